"""Which executor an install uses. A new kind is one line here."""

from __future__ import annotations

from collections.abc import Callable

from apps.engine.errors import EngineError, ImageMissing
from apps.engine.executors.docker import DockerExecutor
from apps.engine.executors.process import ProcessExecutor
from apps.engine.settings import EngineSettings
from apps.engine.types import EnvironmentSpec, Executor

KINDS: dict[str, Callable[[EngineSettings], Executor]] = {
    "docker": DockerExecutor,
    "process": ProcessExecutor,
}
AUTO = "auto"


def _silent(_: str) -> None:
    return


def create_executor(kind: str, settings: EngineSettings) -> Executor:
    if kind not in KINDS:
        raise EngineError(f"There is no executor “{kind}”. Choose one of: {', '.join([AUTO, *KINDS])}.")
    return KINDS[kind](settings)


def choose(kind: str, settings: EngineSettings, say: Callable[[str], None] = _silent) -> tuple[Executor, str]:
    """The executor and one sentence why. `auto` takes Docker where it answers and its image can be had.

    A kind asked for by name is never replaced by a weaker one.
    """
    if kind != AUTO:
        return create_executor(kind, settings), f"Runs use the {kind} executor, as CLAWPANEL_EXECUTOR says."
    docker = create_executor("docker", settings)
    health = docker.health()
    if not health.ok:
        return _process(settings, health.message)
    try:
        docker.environment(EnvironmentSpec(), say)
    except ImageMissing as error:
        return _process(settings, str(error))
    except EngineError as error:
        return _process(settings, f"The image for runs could not be made: {error}")
    return docker, f"Runs are isolated in containers: a Docker Engine {health.version} answers."


def _process(settings: EngineSettings, why: str) -> tuple[Executor, str]:
    return create_executor("process", settings), f"Runs are processes of this machine, not isolated. {why}"
