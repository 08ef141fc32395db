"""Hints to workers, sent by name after the commit. Losing one loses nothing: a sweep does the same work later."""

from __future__ import annotations

import logging
from typing import Any

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)


def enqueue(name: str, *, queue: str | None = None, **kwargs: Any) -> None:
    """Send task `name` with JSON-able keywords once the current transaction has committed."""

    def send() -> None:
        losses: tuple[type[BaseException], ...] = (
            OSError,
            OperationalError,
            *current_app.connection_for_write().connection_errors,
        )
        try:
            current_app.send_task(name, kwargs=kwargs, queue=queue, ignore_result=True, retry=False)
        except losses as error:
            logger.warning("hint %s was not sent, the sweep will do it: %s", name, error)

    transaction.on_commit(send)
