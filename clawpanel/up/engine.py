"""Which executor this machine gets, decided once at the start and made ready."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from apps.engine import registry
from apps.engine.errors import EngineError
from apps.engine.types import EnvironmentSpec
from apps.runs.agent.engine import engine_settings
from clawpanel import env
from clawpanel.refusal import CannotStart


@dataclass(frozen=True)
class Choice:
    """`demo_host` is the address of this machine that runs can reach."""

    executor: str
    why: str
    demo_host: str


def choose(say: Callable[[str], None]) -> Choice:
    """Choose, make what runs share, and build the image when it is missing; `say` shows the progress."""
    try:
        executor, why = registry.choose(env.EXECUTOR, engine_settings(), say)
        executor.prepare()
        executor.environment(EnvironmentSpec(), say)
        return Choice(executor.kind, why, executor.gateway())
    except EngineError as error:
        raise CannotStart(
            f"{error} CLAWPANEL_EXECUTOR={env.EXECUTOR}; CLAWPANEL_RUNNER_BASE names another base image."
        ) from error
