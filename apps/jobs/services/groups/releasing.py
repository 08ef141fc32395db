"""The next runs of a group go into the queue."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from apps.core.actors import SYSTEM
from apps.core.background import enqueue
from apps.runs.models import Batch, Run
from apps.runs.services import move
from apps.runs.states import TERMINAL, State


def release(*, batch: Batch, now: datetime) -> int:
    """Queue as many waiting runs as the group may have under way; how many were.

    The caller holds the lock on the batch's row, so that two of them do not count the same places.
    """
    if batch.kind == Batch.Kind.GRAPH or batch.canceled_at is not None:
        return 0
    # One statement: what is prepared in the meantime must not be counted here and not there.
    runs = Run.objects.filter(batch=batch).exclude(state__in=TERMINAL).order_by("pk")
    open_runs = list(runs.values_list("pk", "state", "spec__limits__queue_seconds"))
    waiting = [(pk, seconds) for pk, state, seconds in open_runs if state == State.WAITING]
    places = len(waiting)
    if batch.concurrency is not None:
        places = max(0, batch.concurrency - (len(open_runs) - len(waiting)))
    released = sum(_queue(pk, seconds, now) for pk, seconds in waiting[:places])
    if released:
        enqueue("runs.wake")
    return released


def _queue(run_id: int, queue_seconds: Any, now: datetime) -> bool:
    """Its time in the queue begins now."""
    return move(
        run_id=run_id,
        to=State.QUEUED,
        frm=(State.WAITING,),
        now=now,
        actor=SYSTEM,
        queued_at=now,
        expires_at=None if queue_seconds is None else now + timedelta(seconds=queue_seconds),
    )
