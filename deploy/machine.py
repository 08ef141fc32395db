"""The second half of deploy/test: system packages, a Docker engine, a base image, then checks and pytest."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from dockerd import Dockerd, quiet

HEAVY = ("tests/browser/", "tests/docker/", "tests/engine/executors/", "tests/journeys/", "tests/chaos/")
MOST_SPOILT = 3
# Whole panels mostly wait, so two parts are tried side by side; whoever is done takes the next. What needs the engine
# is one part: the packet rules of runs are one set on the machine, and some tests change them. What is torn at must
# have the machine for itself.
CRASHES = "tests/journeys/test_crash_points.py"
SERVERS = ("tests/journeys/test_beats.py", "tests/journeys/test_broker.py")
PARTS = {
    "rest": ("tests", "-m", "not docker", "--ignore=tests/journeys", "--ignore=tests/chaos"),
    "engine": ("tests", "-m", "docker", "--ignore=tests/chaos"),
    "crashes": (CRASHES, "-m", "not docker"),
    "servers": (*SERVERS, "-m", "not docker"),
    "journeys": (
        "tests/journeys", "-m", "not docker", *(f"--ignore={path}" for path in (CRASHES, *SERVERS))
    ),
    "chaos": ("tests/chaos",),
}  # fmt: skip
TURNS = (("rest", "engine", "crashes", "servers", "journeys"), ("chaos",))
AT_ONCE = 2
CACHES = Path(".pytest_cache/parts")
ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
PACKAGES = {
    "docker.io": "dockerd",
    "docker-compose": "docker-compose",
    "iptables": "iptables",
    "debootstrap": "debootstrap",
    "chromium": "chromium",
    "git": "git",
    "shellcheck": "shellcheck",
    "curl": "curl",
    "gettext": "msgfmt",
    "rabbitmq-server": "/usr/lib/rabbitmq/bin/rabbitmq-server",
    "fonts-noto-cjk": "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc",
}
PUBLIC_BASE = "python:3.12-slim"
OWN_BASE = "clawpanel-base:bookworm"
HOST_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
USUAL_SOCKET = "unix:///var/run/docker.sock"
PULL_SECONDS = 120
CHECKS = {
    "ruff": ["ruff", "check", "."],
    "format": ["ruff", "format", "--check", "."],
    "imports": ["lint-imports"],
    "types": ["mypy", "apps", "clawpanel"],
    "spelling": ["typos"],
    "templates": ["djlint", "--lint", "--quiet", "--profile=django", "templates"],
}


def say(text: str) -> None:
    print(text, flush=True)


@contextlib.contextmanager
def phase(name: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    say(f"{name}: {time.monotonic() - started:.1f} s")


def there(what: str) -> bool:
    return Path(what).exists() if what.startswith("/") else shutil.which(what) is not None


def install_packages() -> None:
    missing = [package for package, proof in PACKAGES.items() if not there(proof)]
    if not missing:
        return
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing]
    if os.geteuid() != 0 or not there("apt-get"):
        say(f"missing: {', '.join(missing)}. As root on Debian: {' '.join(command)}")
        return
    say(f"installing {' '.join(missing)}")
    # Without this Debian's docker.io starts a daemon of its own wherever an init system runs.
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for step in (["apt-get", "update", "-qq"], command):
        if subprocess.run(step, env=env, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=False).returncode:
            say(f"{' '.join(step)} failed; what needs it is skipped")
            return


def engine_answers() -> bool:
    return quiet("docker", "version", "--format", "{{.Server.Version}}", seconds=15)


@contextlib.contextmanager
def engine(work: Path) -> Iterator[bool]:
    """An engine that answers: the one of this machine, else a private one that is gone afterwards."""
    wants_private = bool(os.environ.get("CLAWPANEL_TEST_PRIVATE_DOCKER"))
    if not wants_private and engine_answers():
        yield True
        return
    if os.geteuid() != 0 or not there("dockerd"):
        say("no Docker engine answers, and only root can start one: docker tests are skipped")
        yield False
        return
    # Nobody answers at the usual place either: what knows no other finds the engine there.
    usual = () if quiet("docker", "-H", USUAL_SOCKET, "version", seconds=15) else ("-H", USUAL_SOCKET)
    own = Dockerd(work, options=usual)
    os.environ["DOCKER_HOST"] = own.url
    try:
        ready = own.start()
        if not ready:
            say(f"the private dockerd did not start, docker tests are skipped:\n  {own.last_words()}")
        yield ready
    finally:
        own.stop()


def base_image(work: Path) -> bool:
    """Tell the tests by CLAWPANEL_RUNNER_BASE what the runner image stands on."""
    if os.environ.get("CLAWPANEL_RUNNER_BASE"):
        return True
    if quiet("docker", "image", "inspect", PUBLIC_BASE):
        return True
    if not quiet("docker", "image", "inspect", OWN_BASE):
        if quiet("docker", "pull", "-q", PUBLIC_BASE, seconds=PULL_SECONDS):
            return True
        if not make_base(work):
            return False
    os.environ["CLAWPANEL_RUNNER_BASE"] = OWN_BASE
    return True


def make_base(work: Path) -> bool:
    archive = os.environ.get("CLAWPANEL_TEST_BASE_ARCHIVE")
    if archive:
        return quiet("docker", "import", archive, OWN_BASE, seconds=300)
    if os.geteuid() != 0 or not there("debootstrap"):
        say(f"{PUBLIC_BASE} cannot be pulled and debootstrap is not there: docker tests are skipped")
        return False
    say(f"{PUBLIC_BASE} cannot be pulled: making {OWN_BASE} by debootstrap")
    tree = work / "base"
    include = "--include=python3,python3-venv,python3-pip,ca-certificates"
    if not quiet("debootstrap", "--variant=minbase", include, "bookworm", str(tree), seconds=900):
        say("debootstrap failed: docker tests are skipped")
        return False
    if HOST_CERTIFICATES.exists():
        shutil.copyfile(HOST_CERTIFICATES, tree / HOST_CERTIFICATES.relative_to("/"))
    tar = subprocess.Popen(["tar", "-C", str(tree), "-c", "."], stdout=subprocess.PIPE)
    done = subprocess.run(["docker", "import", "-", OWN_BASE], stdin=tar.stdout, capture_output=True, check=False)
    if tar.stdout is not None:
        tar.stdout.close()
    tar.wait()
    shutil.rmtree(tree, ignore_errors=True)
    return done.returncode == 0


def run_checks() -> bool:
    good = True
    for name, command in CHECKS.items():
        with phase(name):
            done = subprocess.run(
                [str(BIN / command[0]), *command[1:]], capture_output=True, text=True, cwd=ROOT, check=False
            )
        if done.returncode:
            good = False
            say(f"{done.stdout}{done.stderr}".rstrip())
            say(f"{name} FAILED")
    return good


def run_pytest(arguments: list[str]) -> int:
    """With arguments exactly that; else everything, and what the machine may have spoilt once more, alone."""
    command = [str(BIN / "python"), "-m", "pytest"]
    if arguments:
        return subprocess.run([*command, *arguments], cwd=ROOT, check=False).returncode
    code = 0
    for together in TURNS:
        code = run_side_by_side(command, together) or code
    again = spoilt() if code == 1 else []
    if not again:
        return code
    say(f"these failed and are run again alone, on a machine that does nothing else: {' '.join(again)}")
    code = subprocess.run([*command, "-q", *again], cwd=ROOT, check=False).returncode
    if code == 0:
        say(f"UNSTEADY, passed the second time only: {' '.join(again)}")
    return code


def run_side_by_side(command: list[str], names: tuple[str, ...]) -> int:
    """The first part speaks as it goes, the others when they are done. The worst of their answers."""
    running: dict[str, subprocess.Popen[bytes]] = {}
    codes = [0]
    with tempfile.TemporaryDirectory() as folder:
        logs = {name: Path(folder) / name for name in names}

        def collect(least: int) -> None:
            while len(running) > least:
                for name in [name for name, process in running.items() if process.poll() is not None]:
                    codes.append(running.pop(name).returncode)
                    if name != names[0]:
                        say(f"{name}, at the same time:\n{logs[name].read_text(errors='replace').rstrip()}")
                time.sleep(0.2)

        try:
            for name in names:
                collect(AT_ONCE - 1)
                whole = [*command, *PARTS[name], "--durations=10", "-q", "-o", f"cache_dir={CACHES / name}"]
                with logs[name].open("wb") as log:
                    out = log if name != names[0] else None
                    running[name] = subprocess.Popen(whole, cwd=ROOT, stdout=out, stderr=out)
            collect(0)
        finally:
            for process in running.values():
                process.send_signal(signal.SIGINT)
                process.wait()
    return max(codes, key=abs)


def spoilt() -> list[str]:
    """The failed tests, if they are few and all need a browser, an engine or whole processes: their pace varies."""
    failed: list[str] = []
    for part in PARTS:
        try:
            failed += sorted(json.loads((ROOT / CACHES / part / "v/cache/lastfailed").read_text()))
        except (OSError, ValueError):
            continue
    heavy = all(name.startswith(HEAVY) for name in failed)
    return failed if heavy and len(failed) <= MOST_SPOILT else []


def stop_on_signal(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, stop_on_signal)
    # Where temporary folders lie on memory a Docker data root does not fit, and overlay does not work on overlay.
    parent = "/var/tmp" if os.access("/var/tmp", os.W_OK) else None  # noqa: S108 (a private folder is made in it)
    work = Path(tempfile.mkdtemp(prefix="clawpanel-test-", dir=parent))
    try:
        with phase("system packages"):
            install_packages()
        with engine(work) as answers:
            if answers:
                with phase("base image"):
                    base_image(work)
            good = bool(arguments) or run_checks()
            code = run_pytest(arguments)
    except KeyboardInterrupt:
        return 130
    else:
        return code or (0 if good else 1)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
