"""Hints to workers, sent by name after the commit. Losing one loses nothing: a sweep does the same work later."""

from __future__ import annotations

import logging
import time
from typing import Any

from celery import current_app
from django.db import transaction
from kombu import Connection
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)

# A broker that is gone may take seconds to say so: after a loss the next hints are not even tried.
PAUSE_SECONDS = 2.0
_silent_until = 0.0


def _losses(connection: Connection) -> tuple[type[BaseException], ...]:
    """What a transport raises when its broker is away, or no master any more."""
    return OSError, OperationalError, *connection.connection_errors, *connection.channel_errors


def enqueue(name: str, *, queue: str | None = None, **kwargs: Any) -> None:
    """Send task `name` with JSON-able keywords once the current transaction has committed."""
    transaction.on_commit(lambda: _send(name, queue, kwargs))


def _send(name: str, queue: str | None, kwargs: dict[str, Any]) -> None:
    global _silent_until  # noqa: PLW0603 (one broker, one clock)
    if time.monotonic() < _silent_until:
        return
    try:
        current_app.send_task(name, kwargs=kwargs, queue=queue, ignore_result=True, retry=False)
    except _losses(current_app.connection_for_write()) as error:
        _silent_until = time.monotonic() + PAUSE_SECONDS
        logger.warning("hint %s was not sent, the sweep will do it: %s", name, error)


def broker_answers() -> bool:
    """Whether Celery's broker can be reached now; one try."""
    connection = current_app.connection_for_read()
    try:
        connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0)
    except _losses(connection) as error:
        logger.warning("the broker does not answer: %s", error)
        return False
    finally:
        connection.release()
    return True
