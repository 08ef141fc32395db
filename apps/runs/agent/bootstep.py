"""How the agent lives in a Celery worker."""

from __future__ import annotations

import logging
from typing import Any

from celery import bootsteps
from django.conf import settings
from django.db import connection

from apps.runs.agent.agent import Agent
from apps.runs.agent.config import from_settings
from apps.runs.agent.engine import executor_from_settings

logger = logging.getLogger(__name__)


class AgentStep(bootsteps.StartStopStep):
    """Starts before the worker takes its first message and leaves before the process does."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self.agent: Agent | None = None

    def start(self, parent: Any) -> None:
        executor, why = executor_from_settings(settings.CLAWPANEL_EXECUTOR)
        logger.info("%s", why)
        self.agent = Agent(from_settings(), executor)
        self.agent.start()

    def stop(self, parent: Any) -> None:
        if self.agent is not None:
            self.agent.leave()
            self.agent = None
            connection.close()

    terminate = stop
