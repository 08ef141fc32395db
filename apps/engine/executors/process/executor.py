"""The process executor: a shim per attempt, and all that is known of it in files beside the spools."""

from __future__ import annotations

import contextlib
import logging
import marshal
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event

from apps.engine.builder import VenvBuilder
from apps.engine.builder.venv import base_interpreters
from apps.engine.errors import CreateFailed, EngineUnavailable
from apps.engine.executors.layout import own_folder, remove_secrets, write_secrets
from apps.engine.executors.process import bell, proc
from apps.engine.executors.process.order import (
    BELLS,
    FOLDER,
    first_closed,
    instant,
    make_order,
    read_json,
    read_text,
    write_order,
)
from apps.engine.harness_copy import install_harness
from apps.engine.settings import EngineSettings
from apps.engine.spool import create_spools
from apps.engine.types import EngineHealth, EnvironmentSpec, Handle, Observation, Phase, RunSpec, Sample, attempt_name

logger = logging.getLogger(__name__)

# Imported rather than run as a script: only then is its compiled form used, which is felt at every start.
_SHIM = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import shim; shim.main()"
_START_SECONDS = 10
_REMOVE_SECONDS = 5.0
_STOP_ROUNDS = 5


class ProcessExecutor:
    kind = "process"
    isolated = False

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._venvs = VenvBuilder(settings)
        self._bells = settings.home / BELLS
        self._harness: Path | None = None
        self._python, self._closed_path = _choose_python(settings.home)

    def gateway(self) -> str:
        """Where the demo site must listen for runs to reach it."""
        return "127.0.0.1"

    @property
    def _drops_rights(self) -> bool:
        return os.geteuid() == 0 and self._closed_path is None

    def _ids(self) -> tuple[int, int]:
        if self._drops_rights:
            return self._settings.run_uid, self._settings.run_uid
        return os.geteuid(), os.getegid()

    def prepare(self) -> None:
        for folder in (self._settings.home / "runs", self._bells):
            folder.mkdir(parents=True, exist_ok=True)
        self._harness_dir()

    def _harness_dir(self) -> Path:
        if self._harness is None or not self._harness.is_dir():
            self._harness = install_harness(self._settings.home)
        return self._harness

    def health(self) -> EngineHealth:
        warnings = ["Runs are not isolated: spiders are plain processes of this machine."]
        if self._closed_path is not None:
            warnings.append(
                f"Spiders run as root, because other users may not enter {self._closed_path}: move CLAWPANEL_HOME or "
                "start the panel as an ordinary user."
            )
        elif not self._drops_rights:
            warnings.append("Spiders run as the panel's own user and can read its files.")
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        version = ".".join(map(str, sys.version_info[:3]))
        return EngineHealth(
            ok=True,
            version=f"Python {version}",
            cpus=os.cpu_count() or 1,
            memory_bytes=memory,
            warnings=tuple(warnings),
        )

    def probe(self) -> tuple[str, ...]:
        return ()

    def environment(self, spec: EnvironmentSpec, say: Callable[[str], None]) -> str:
        return self._venvs.environment(spec, say, python=self._python, ids=self._ids())

    def create(self, spec: RunSpec) -> Handle:
        found = self.find(spec.install, spec.run_id, spec.attempt, spec.run_dir)
        if found is not None:
            return found
        uid, gid = self._ids()
        if not spec.code_dir.is_dir():
            raise CreateFailed(f"The spider's code is not at {spec.code_dir}.")
        if not os.access(spec.environment, os.X_OK):
            raise CreateFailed(f"The interpreter {spec.environment} is not there any more.")
        closed = first_closed(spec.code_dir, spec.run_dir.parent) if self._drops_rights else None
        if closed is not None:
            raise CreateFailed(f"The user that spiders run as (uid {uid}) may not enter {closed}.")
        order = make_order(spec, self._settings, self._harness_dir(), uid=uid, gid=gid)
        create_spools(spec.run_dir, uid, gid)
        own_folder(spec.run_dir / "work", uid, gid)
        own_folder(spec.run_dir / "work" / "tmp", uid, gid)
        write_secrets(self._settings.secrets_dir(spec.name), spec.secrets, uid, gid)
        write_order(spec.run_dir / FOLDER, order)
        return self._handle(spec.name, spec.run_id, spec.attempt, spec.run_dir)

    def start(self, handle: Handle) -> None:
        if self.inspect(handle).phase is not Phase.CREATED:
            return
        reader, writer = os.pipe()
        try:
            command = [sys.executable, "-I", "-S", "-c", _SHIM, str(handle.run_dir / FOLDER), str(writer)]
            with (handle.run_dir / FOLDER / "log").open("ab") as log:
                subprocess.run(
                    command,
                    pass_fds=(writer,),
                    cwd="/",
                    env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"},
                    input=marshal.dumps(read_json(handle.run_dir / FOLDER / "order.json")),
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    timeout=_START_SECONDS,
                    check=True,
                )
            os.close(writer)
            writer = -1
            ready, _, _ = select.select([reader], [], [], _START_SECONDS)
            said = os.read(reader, 1) if ready else b""
        except (OSError, subprocess.SubprocessError) as error:
            raise CreateFailed(f"The run could not be started: {error}") from error
        finally:
            for descriptor in (reader, writer):
                if descriptor >= 0:
                    os.close(descriptor)
        if said != b"1" and self.inspect(handle).phase is Phase.CREATED:
            self._refuse(handle)

    def _refuse(self, handle: Handle) -> None:
        """No word from the shim. Unless another worker's shim is just starting it, that is the end of the attempt."""
        for _ in range(20):
            if self.inspect(handle).phase is not Phase.CREATED:
                return
            time.sleep(0.05)
        lines = read_text(handle.run_dir / FOLDER / "log").strip().splitlines()
        raise CreateFailed(f"The run could not be started: {lines[-1] if lines else 'no answer'}")

    def find(self, install: str, run_id: int, attempt: int, run_dir: Path) -> Handle | None:
        order = read_json(run_dir / FOLDER / "order.json")
        if (order.get("install"), order.get("run_id"), order.get("attempt")) != (install, run_id, attempt):
            return None
        return self._handle(str(order["name"]), run_id, attempt, run_dir)

    @staticmethod
    def _handle(name: str, run_id: int, attempt: int, run_dir: Path) -> Handle:
        return Handle(name=name, run_id=run_id, attempt=attempt, ref=name, run_dir=run_dir)

    def inspect(self, handle: Handle) -> Observation:
        folder = handle.run_dir / FOLDER
        if not (folder / "order.json").exists():
            return Observation(Phase.MISSING)
        pid = read_json(folder / "pid.json")
        if not pid and not (folder / "end.json").exists():
            return Observation(Phase.CREATED)
        alive = bool(pid) and proc.is_alive(int(pid["pid"]), int(pid["started"]))
        end = read_json(folder / "end.json")  # read after the look at the process: it is written before the shim ends
        started_at = instant(pid.get("started_at") or end.get("started_at"))
        if end:
            return Observation(
                Phase.EXITED,
                exit_code=int(end["exit_code"]),
                oom_killed=bool(end["oom_killed"]),
                started_at=started_at,
                finished_at=instant(end["finished_at"]),
            )
        if alive:
            paused = (folder / "paused").exists()
            return Observation(Phase.PAUSED if paused else Phase.RUNNING, started_at=started_at)
        # The shim was killed, or the machine was started anew: how the attempt ended is not known.
        proc.kill_session(int(pid["pid"]), int(pid["started"]), str(pid.get("space")))
        return Observation(Phase.MISSING, started_at=started_at, error="The process that watched over the run is gone.")

    def _shim(self, handle: Handle) -> int:
        """The shim's pid while it lives, else 0."""
        pid = read_json(handle.run_dir / FOLDER / "pid.json")
        return int(pid["pid"]) if pid and proc.is_alive(int(pid["pid"]), int(pid["started"])) else 0

    def terminate(self, handle: Handle) -> None:
        root = self._shim(handle)
        if root:
            with contextlib.suppress(ProcessLookupError):
                os.kill(root, signal.SIGTERM)
            self.resume(handle)

    def kill(self, handle: Handle) -> None:
        root = self._shim(handle)
        if root:
            proc.signal_tree(root, signal.SIGKILL, rounds=_STOP_ROUNDS)

    def pause(self, handle: Handle) -> None:
        root = self._shim(handle)
        if root:
            (handle.run_dir / FOLDER / "paused").touch()
            proc.signal_tree(root, signal.SIGSTOP, rounds=2)

    def resume(self, handle: Handle) -> None:
        root = self._shim(handle)
        marker = handle.run_dir / FOLDER / "paused"
        if root and marker.exists():
            proc.signal_tree(root, signal.SIGCONT, rounds=2)
            marker.unlink(missing_ok=True)

    def sample(self, handle: Handle) -> Sample | None:
        root = self._shim(handle)
        own = proc.read_stat(root) if root else None
        if own is None:
            return None
        tree = proc.descendants(root)
        order = read_json(handle.run_dir / FOLDER / "order.json")
        return Sample(
            cpu_seconds=(sum(stat.cpu_ticks for stat in tree) + own.children_ticks) / proc.TICKS,
            memory_bytes=sum(stat.rss_bytes for stat in tree),
            memory_limit_bytes=int(order["limits"]["memory_bytes"]),
            pids=len(tree),
        )

    def remove(self, handle: Handle) -> None:
        root = self._shim(handle)
        deadline = time.monotonic() + _REMOVE_SECONDS
        while root and self._shim(handle):
            proc.signal_tree(root, signal.SIGKILL, rounds=_STOP_ROUNDS)
            if time.monotonic() > deadline:
                raise EngineUnavailable(f"The processes of {handle.name} could not be ended yet.")
            time.sleep(0.02)
        shutil.rmtree(handle.run_dir / "work", ignore_errors=True)
        shutil.rmtree(handle.run_dir / FOLDER, ignore_errors=True)
        remove_secrets(self._settings.secrets_dir(handle.name))

    def forget(self, install: str, run_id: int, attempt: int) -> None:
        remove_secrets(self._settings.secrets_dir(attempt_name(install, run_id, attempt)))

    def list(self, install: str) -> list[Handle]:
        handles = []
        for path in sorted((self._settings.home / "runs").glob(f"*/{FOLDER}/order.json")):
            order = read_json(path)
            if order.get("install") == install:
                run_dir = path.parent.parent
                handles.append(self._handle(order["name"], int(order["run_id"]), int(order["attempt"]), run_dir))
        return handles

    def watch(self, wake: Callable[[str], None], stop: Event) -> None:
        self._bells.mkdir(parents=True, exist_ok=True)
        bell.listen(self._bells, wake, stop)


def _choose_python(home: Path) -> tuple[str, Path | None]:
    """The interpreter of runs, and the folder (if any) that keeps us from running them as another user."""
    candidates = list(base_interpreters())
    if os.geteuid() != 0:
        return candidates[0], None
    for candidate in candidates:
        if first_closed(Path(candidate)) is None:
            return candidate, first_closed(home)
    return candidates[0], first_closed(Path(candidates[0]))
