"""The executor of this install, from Django's settings."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from apps.engine import registry
from apps.engine.settings import EngineSettings
from apps.engine.types import Executor


def engine_settings() -> EngineSettings:
    return EngineSettings(
        install=settings.CLAWPANEL_INSTALL,
        home=Path(settings.CLAWPANEL_HOME),
        docker_url=settings.CLAWPANEL_DOCKER_URL,
        docker_certs=settings.CLAWPANEL_DOCKER_CERTS,
        runner_base=settings.CLAWPANEL_RUNNER_BASE,
        # The same words as `up` uses: two sets of packet rules would undo each other.
        demo_address=f":{settings.CLAWPANEL_DEMO_PORT}",
        pip_env=settings.CLAWPANEL_BUILD_ENV,
    )


def executor_from_settings(kind: str) -> tuple[Executor, str]:
    """The executor and one sentence why it is that one."""
    return registry.choose(kind, engine_settings())
