"""A waiting run of a batch gets its turn."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from apps.core.actors import SYSTEM
from apps.core.background import enqueue
from apps.runs.models import Run, RunEvent
from apps.runs.selectors.batches import TURN
from apps.runs.services import move
from apps.runs.states import State


def give_turn(*, run: Run, spec: Mapping[str, Any], now: datetime) -> None:
    """Queue it; or, when it has templates, have it prepared first, which may take a while. The caller holds the lock on
    the row of its batch, and has seen that the run has had no turn before."""
    note_turn(run=run, now=now)
    if spec.get("pending"):
        enqueue("jobs.prepare", run_id=run.pk)
    elif to_queue(run_id=run.pk, spec=spec, now=now):
        enqueue("runs.wake")


def note_turn(*, run: Run, now: datetime) -> None:
    """From here on nothing but its preparation keeps it from the queue."""
    RunEvent.objects.create(run=run, at=now, kind=TURN, attempt=run.attempt, actor=str(SYSTEM))


def to_queue(*, run_id: int, spec: Mapping[str, Any], now: datetime, rewrite: bool = False, **fields: Any) -> bool:
    """Its time in the queue begins now, its order being `spec`: stored with it, where it was rewritten. False: it waits
    no more."""
    if rewrite:
        fields["spec"] = dict(spec)
    seconds = spec.get("limits", {}).get("queue_seconds")
    return move(
        run_id=run_id,
        to=State.QUEUED,
        frm=(State.WAITING,),
        now=now,
        actor=SYSTEM,
        queued_at=now,
        expires_at=None if seconds is None else now + timedelta(seconds=seconds),
        **fields,
    )
