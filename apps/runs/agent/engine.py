"""The executor of this install, from Django's settings."""

from __future__ import annotations

import os
from pathlib import Path

from django.conf import settings

from apps.engine import registry
from apps.engine.settings import EngineSettings
from apps.engine.types import Executor

_BUILD_PREFIXES = ("PIP_", "UV_", "SSL_")


def engine_settings() -> EngineSettings:
    passed_on = {name: value for name, value in os.environ.items() if name.startswith(_BUILD_PREFIXES)}  # noqa: TID251
    return EngineSettings(
        install=settings.CLAWPANEL_INSTALL,
        home=Path(settings.CLAWPANEL_HOME),
        docker_url=settings.CLAWPANEL_DOCKER_URL,
        runner_base=settings.CLAWPANEL_RUNNER_BASE,
        pip_env=passed_on,
    )


def executor_from_settings(kind: str) -> tuple[Executor, str]:
    """The executor and one sentence why it is that one."""
    return registry.choose(kind, engine_settings())
