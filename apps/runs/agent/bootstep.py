"""How the agent lives in a Celery worker."""

from __future__ import annotations

import logging
import threading
from typing import Any

from celery import bootsteps
from django.conf import settings
from django.db import Error, connection
from django.utils import timezone

from apps.engine.errors import EngineError
from apps.runs.agent import joining
from apps.runs.agent.agent import Agent
from apps.runs.agent.config import from_settings
from apps.runs.agent.engine import executor_from_settings

logger = logging.getLogger(__name__)

AGAIN_SECONDS = 2.0


class AgentStep(bootsteps.StartStopStep):
    """Begins beside the worker, which may take messages while an image is built or the database is not there yet."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self.agent: Agent | None = None
        self._stop = threading.Event()
        self._boot = threading.Thread(target=self._begin, name="agent-boot", daemon=True)

    def start(self, parent: Any) -> None:
        self._boot.start()

    def _begin(self) -> None:
        while not self._stop.is_set():
            try:
                executor, why = executor_from_settings(settings.CLAWPANEL_EXECUTOR)
                logger.info("%s", why)
                agent = Agent(from_settings(), executor)
                labels = settings.CLAWPANEL_NODE_LABELS
                joining.declare_labels(node=agent.station.node, labels=labels, now=timezone.now())
                agent.start()
                self.agent = agent
            except (Error, EngineError) as error:
                logger.warning("the agent cannot begin yet: %s", error)
            except Exception:
                logger.exception("the agent cannot begin")
            else:
                return
            finally:
                connection.close()
            self._stop.wait(AGAIN_SECONDS)

    def stop(self, parent: Any) -> None:
        self._stop.set()
        # A build may take long; an agent that is not there yet holds nothing.
        self._boot.join(1.0)
        if self.agent is not None:
            self.agent.leave()
            self.agent = None
            connection.close()

    terminate = stop
