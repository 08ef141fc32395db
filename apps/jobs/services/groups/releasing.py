"""The next runs of a group go into the queue."""

from __future__ import annotations

from datetime import datetime

from apps.runs.models import Batch


def release(*, batch: Batch, now: datetime) -> int:
    """Queue as many waiting runs as the group may have under way; how many were.

    The caller holds the lock on the batch's row, so that two of them do not count the same places.
    """
    raise NotImplementedError
