"""A home, an executor of each kind, and a driver that runs a case to its end."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from apps.engine.docker_api import connect
from apps.engine.errors import EngineError
from apps.engine.executors.docker import DockerExecutor
from apps.engine.executors.process import ProcessExecutor
from apps.engine.settings import EngineSettings
from apps.engine.spool import OUT, RECORDS
from apps.engine.types import MIB, EnvironmentSpec, Executor, Handle, Limits, Observation, Phase, RunSpec

CASES = Path(__file__).parent.parent.parent / "cases" / "spiders"
DOCKER_URL = os.environ.get("DOCKER_HOST", "")
BASES = ("clawpanel-base:bookworm", "python:3.12-slim")
SMALL = Limits(memory_bytes=256 * MIB, pids=64, tmp_bytes=32 * MIB, output_bytes=64 * MIB, grace_seconds=2)


def has_docker() -> bool:
    try:
        connect(DOCKER_URL, timeout=3).close()
    except EngineError:
        return False
    return True


def local_base() -> str:
    """A base image that is here already; CLAWPANEL_RUNNER_BASE comes first."""
    api = connect(DOCKER_URL)
    try:
        tags = {tag for image in api.images() for tag in image.get("RepoTags") or ()}
    finally:
        api.close()
    wanted = (os.environ.get("CLAWPANEL_RUNNER_BASE", ""), *BASES)
    return next((base for base in wanted if base in tags), BASES[-1])


@dataclass
class Driver:
    """Creates, starts and observes attempts, and removes all of them at the end."""

    executor: Executor
    settings: EngineSettings
    environment: str
    code: Path
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    handles: list[Handle] = field(default_factory=list)

    def spec(self, command: tuple[str, ...], **given: Any) -> RunSpec:
        run_id = given.pop("run_id", None) or next(self.numbers)
        values: dict[str, Any] = {
            "install": self.settings.install,
            "run_id": run_id,
            "attempt": 1,
            "token": 1,
            "request_id": "req-1",
            "spider": "case",
            "command": command,
            "code_dir": self.code,
            "run_dir": self.settings.run_dir(run_id, 1),
            "environment": self.environment,
            "limits": SMALL,
        }
        return RunSpec(**values | given)

    def case(self, name: str, env: Mapping[str, str] | None = None, **given: Any) -> Handle:
        return self.begin(self.spec(("python3", name), env=env or {}, **given))

    def script(self, text: str, **given: Any) -> Handle:
        return self.begin(self.spec(("python3", "-c", text), **given))

    def begin(self, spec: RunSpec) -> Handle:
        handle = self.executor.create(spec)
        self.handles.append(handle)
        self.executor.start(handle)
        return handle

    def wait(self, handle: Handle, seconds: float = 60) -> Observation:
        self.until(lambda: self.executor.inspect(handle).phase in (Phase.EXITED, Phase.MISSING), seconds)
        return self.executor.inspect(handle)

    def until(self, true: Callable[[], bool], seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, "it did not happen in time"
            time.sleep(0.02)

    def out(self, handle: Handle) -> str:
        return (handle.run_dir / OUT).read_text(errors="replace")

    def records(self, handle: Handle) -> str:
        return (handle.run_dir / RECORDS).read_text(errors="replace")

    def until_printed(self, handle: Handle, text: str, seconds: float = 30) -> None:
        self.until(lambda: text in self.out(handle), seconds)

    def another(self) -> Executor:
        """As a worker that was started later sees the engine."""
        return type(self.executor)(self.settings)  # type: ignore[call-arg]  # both kinds take the settings


@pytest.fixture(scope="session")
def engine_home() -> Iterator[Path]:
    # Not pytest's own folder: other users may not enter that, and spiders are other users when tests run as root.
    home = Path(tempfile.mkdtemp(prefix="claw-engine-", dir="/var/tmp"))
    home.chmod(0o755)
    shutil.copytree(CASES, home / "code")
    for path in (home / "code").rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    yield home
    shutil.rmtree(home, ignore_errors=True)


def driver_of(executor: Executor, settings: EngineSettings, home: Path) -> Driver:
    executor.prepare()
    return Driver(executor, settings, executor.environment(EnvironmentSpec(), print), home / "code")


@pytest.fixture(scope="session")
def docker_session(engine_home: Path) -> Iterator[Driver]:
    if not has_docker():
        pytest.skip("no Docker Engine answers: start dockerd, or run deploy/test as root")
    settings = EngineSettings(
        install=f"t{os.getpid()}d", home=engine_home, docker_url=DOCKER_URL, runner_base=local_base()
    )
    driver = driver_of(DockerExecutor(settings), settings, engine_home)
    yield driver
    clean_up(driver)


@pytest.fixture(scope="session")
def process_session(engine_home: Path) -> Iterator[Driver]:
    settings = EngineSettings(install=f"t{os.getpid()}p", home=engine_home)
    driver = driver_of(ProcessExecutor(settings), settings, engine_home)
    # Two executors share a home here, so they must not share run folders.
    driver.numbers = itertools.count(10_001)
    yield driver
    clean_up(driver)


def clean_up(driver: Driver) -> None:
    for handle in driver.executor.list(driver.settings.install):
        with suppress(EngineError):
            driver.executor.remove(handle)
    shutil.rmtree(driver.settings.secrets_dir("x").parent, ignore_errors=True)


@pytest.fixture
def docker(docker_session: Driver) -> Iterator[Driver]:
    yield docker_session
    remove_all(docker_session)


@pytest.fixture
def process(process_session: Driver) -> Iterator[Driver]:
    yield process_session
    remove_all(process_session)


def remove_all(driver: Driver) -> None:
    while driver.handles:
        driver.executor.remove(driver.handles.pop())


@pytest.fixture(params=[pytest.param("docker", marks=pytest.mark.docker), "process"])
def driver(request: pytest.FixtureRequest) -> Driver:
    """Each test that takes it runs once per kind of executor."""
    found: Driver = request.getfixturevalue(request.param)
    return found
