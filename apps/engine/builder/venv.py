"""Virtualenvs for runs without a container, made by uv."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import uv

from apps.engine.builder.locks import build_lock, digest_of
from apps.engine.builder.sources import uv_environment
from apps.engine.errors import BuildFailed
from apps.engine.redact import Redactor
from apps.engine.settings import EngineSettings
from apps.engine.types import EnvironmentSpec

Say = Callable[[str], None]
_TIMEOUT_SECONDS = 1800
_LOOK_SECONDS = 0.5
_LONGEST_LINE = 64 * 1024
_COMPLETE = ".complete"
_OPEN_AS_IT_IS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def base_interpreters() -> Iterator[str]:
    """The Python that ours was made from, so that a run does not see the panel's packages, then those of the system."""
    yield os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    for path in ("/usr/local/bin/python3", "/usr/bin/python3"):
        if Path(path).exists():
            yield os.path.realpath(path)


class VenvBuilder:
    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings

    def environment(self, spec: EnvironmentSpec, say: Say, *, python: str, ids: tuple[int, int]) -> str:
        """The interpreter for these requirements, its virtualenv built from `python` when missing.

        Packages run code of strangers while they are built: `ids` are the uid and gid they get.
        """
        if spec.is_plain:
            return python
        digest = digest_of(python, str(Path(python).stat().st_mtime_ns), spec.requirements)
        folder = self._settings.home / "venvs" / digest
        if not (folder / _COMPLETE).exists():
            with build_lock(self._settings.home, digest, say):
                if not (folder / _COMPLETE).exists():
                    self._build(folder, spec, say, python, ids)
        return str(folder / "bin" / "python3")

    def _build(self, folder: Path, spec: EnvironmentSpec, say: Say, python: str, ids: tuple[int, int]) -> None:
        say("Installing the requirements into a virtualenv. This happens once per set of requirements.")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with tempfile.TemporaryDirectory(prefix="claw-build-") as scratch:
            requirements = Path(scratch) / "requirements.txt"
            requirements.write_text(spec.requirements)
            home = Path(scratch) / "home"
            home.mkdir()
            tool = home / "uv"
            shutil.copy(uv.find_uv_bin(), tool)  # ours may lie where the other user may not go
            # What is inside first: once the folder is theirs, a path into it may lead anywhere.
            for path in (folder, requirements, home, Path(scratch)):
                os.chown(path, *ids)
            env = {
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "HOME": str(home),
                "TMPDIR": str(home),
                "LANG": "C.UTF-8",
                "UV_NO_CONFIG": "1",
                "UV_NO_PROGRESS": "1",
                "UV_PYTHON_DOWNLOADS": "never",
            } | uv_environment(self._settings.pip_env)
            commands = (
                ["venv", "--quiet", "--allow-existing", "--python", python, str(folder)],
                ["pip", "install", "--no-cache", "--python", str(folder / "bin" / "python3"), "-r", str(requirements)],
            )
            for command in commands:
                self._run([str(tool), *command], env, ids, home, say)
        seal(folder, ids[0])
        (folder / _COMPLETE).touch(exist_ok=False)
        say("The requirements are installed.")

    @staticmethod
    def _run(command: list[str], env: dict[str, str], ids: tuple[int, int], home: Path, say: Say) -> None:
        redact = Redactor().redact
        other = {"user": ids[0], "group": ids[1], "extra_groups": []} if ids[0] != os.geteuid() else {}
        process = subprocess.Popen(
            command,
            env=env,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **other,  # type: ignore[call-overload]  # the three arguments are present or absent together
        )
        last = ""
        try:
            with process:
                for line in _said_by(process, _TIMEOUT_SECONDS):
                    if line.strip():
                        last = redact(line.rstrip())
                        say(last)
        finally:
            _kill_group(process)
        if process.wait():
            raise BuildFailed(f"The requirements could not be installed: {last.strip() or 'uv gave no reason'}")


def _said_by(process: subprocess.Popen[bytes], seconds: float) -> Iterator[str]:
    """The lines of a process that ends in time; what outlives it may hold the pipe open, and is not waited for."""
    deadline = time.monotonic() + seconds
    descriptor = process.stdout.fileno() if process.stdout else -1
    rest = b""
    while True:
        ready, _, _ = select.select([descriptor], [], [], _LOOK_SECONDS)
        if not ready and process.poll() is not None:
            break
        chunk = os.read(descriptor, _LONGEST_LINE) if ready else b""
        if ready and not chunk:
            break
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > _LONGEST_LINE:
            lines, rest = [*lines, rest], b""
        yield from (line.decode(errors="replace") for line in lines)
        if time.monotonic() > deadline:
            _kill_group(process)
            raise BuildFailed(f"The requirements were not installed within {seconds / 60:g} minutes.")
    yield rest.decode(errors="replace")


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """A package that is built may leave processes behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def seal(folder: Path, owner: int) -> None:
    """What `owner` built becomes ours and read-only: a run must not change what the next one runs in."""
    place = os.open(folder, _OPEN_AS_IT_IS | os.O_DIRECTORY)
    try:
        _seal_inside(place, owner)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_COMPLETE, dir_fd=place)
    finally:
        os.close(place)


def _seal_inside(place: int, owner: int) -> None:
    """By descriptors, never by path: a process of `owner` may swap a file for a link to one of ours at any time."""
    os.fchown(place, os.geteuid(), os.getegid())
    os.fchmod(place, 0o755)  # from here on no name in it changes
    for name in os.listdir(place):
        try:
            inner = os.open(name, _OPEN_AS_IT_IS, dir_fd=place)
        except OSError:
            continue  # a link or a socket
        try:
            found = os.fstat(inner)
            if found.st_uid != owner:
                continue  # a second name of somebody else's file
            if stat.S_ISDIR(found.st_mode):
                _seal_inside(inner, owner)
            elif stat.S_ISREG(found.st_mode):
                os.fchown(inner, os.geteuid(), os.getegid())
                os.fchmod(inner, found.st_mode & 0o555 | 0o444)
        finally:
            os.close(inner)
