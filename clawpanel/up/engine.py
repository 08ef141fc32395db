"""Which executor this machine gets, decided once at the start and made ready."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from apps.engine import registry
from apps.engine.errors import EngineError
from apps.engine.settings import EngineSettings
from apps.engine.types import EnvironmentSpec
from clawpanel import env, keys
from clawpanel.refusal import CannotStart


@dataclass(frozen=True)
class Choice:
    """`demo_host` is the address of this machine that runs can reach."""

    executor: str
    why: str
    demo_host: str


def choose(say: Callable[[str], None]) -> Choice:
    """Choose, make what runs share, and build the image when it is missing; `say` shows the progress."""
    settings = EngineSettings(
        install=keys.install_name(),
        home=env.HOME,
        docker_url=env.DOCKER_URL,
        runner_base=env.RUNNER_BASE,
        demo_address=f":{env.DEMO_PORT}",
        pip_env=env.build_environment(),
    )
    try:
        executor, why = registry.choose(env.EXECUTOR, settings, say)
        executor.prepare()
        executor.environment(EnvironmentSpec(), say)
        return Choice(executor.kind, why, executor.gateway())
    except EngineError as error:
        raise CannotStart(
            f"{error} CLAWPANEL_EXECUTOR={env.EXECUTOR}; CLAWPANEL_RUNNER_BASE names another base image."
        ) from error
