"""The next runs of a group go into the queue."""

from __future__ import annotations

from datetime import datetime

from apps.core.background import enqueue
from apps.jobs.services.turns import note_turn, to_queue
from apps.runs.models import Batch, Run
from apps.runs.selectors.batches import whose_turn_has_come
from apps.runs.states import TERMINAL, State


def release(*, batch: Batch, now: datetime) -> int:
    """Give as many waiting runs their turn as the group may have under way; how many got it.

    The caller holds the lock on the batch's row, so that two of them do not count the same places. A run that is being
    prepared has its place already, and so has one that waits for its next attempt.
    """
    if batch.kind == Batch.Kind.GRAPH or batch.canceled_at is not None:
        return 0
    # One statement: what is queued in the meantime must not be counted as waiting and as under way, or as neither.
    open_runs = list(Run.objects.filter(batch=batch).exclude(state__in=TERMINAL).order_by("pk").only("state"))
    told = whose_turn_has_come(open_runs)
    waiting = [run.pk for run in open_runs if run.state == State.WAITING and run.pk not in told]
    places = len(waiting)
    if batch.concurrency is not None:
        places = max(0, batch.concurrency - (len(open_runs) - len(waiting)))
    for run in Run.objects.filter(pk__in=waiting[:places]).order_by("pk").only("attempt", "spec"):
        _give_turn(run, now)
    return min(places, len(waiting))


def _give_turn(run: Run, now: datetime) -> None:
    note_turn(run=run, now=now)
    if run.spec.get("pending"):
        enqueue("jobs.prepare", run_id=run.pk)
    elif to_queue(run_id=run.pk, spec=run.spec, now=now):
        enqueue("runs.wake")
