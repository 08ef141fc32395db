"""The end of a whole batch by a person."""

from __future__ import annotations

import contextlib
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from apps.core.actors import SYSTEM, Actor
from apps.core.background import enqueue
from apps.core.changes import note_change
from apps.core.errors import Conflict, NotFound
from apps.runs.models import Batch, Run
from apps.runs.services import RunFinished, request_stop
from apps.runs.states import TERMINAL, State

# More than these are left to a worker: who presses the button does not wait for a thousand.
AT_ONCE = 100


class BatchFinished(Conflict):
    """There is nothing left to stop."""

    code = "batch_finished"


@transaction.atomic
def stop_batch(*, batch: Batch, by: Actor, now: datetime) -> None:
    """Cancel what waits and stop what is under way, of any kind of batch. A second time changes nothing."""
    own = Batch.objects.select_for_update(no_key=True).filter(pk=batch.pk).first()
    if own is None:
        raise NotFound(_("There is no such batch."))
    if own.finished_at is not None:
        raise BatchFinished(_("Batch %(id)s is over already.") % {"id": own.pk})
    if own.canceled_at is None:
        own.canceled_at, own.graph = now, {**own.graph, "canceled_by": by.name}
        own.save(update_fields=["canceled_at", "graph"])
        note_change(own, by, "stopped")
        stop_runs(batch=own, by=by, now=now, most=AT_ONCE)
        enqueue("jobs.settle_batches", batch_id=own.pk)
    batch.refresh_from_db()


def stop_runs(*, batch: Batch, now: datetime, by: Actor = SYSTEM, most: int | None = None) -> None:
    """The last first: what waits is gone before what it waits for. The caller holds the lock on the batch's row."""
    said = {"by": batch.graph.get("canceled_by", by.name), "batch": batch.pk}
    active = Run.objects.filter(batch=batch).exclude(state__in=(*TERMINAL, State.STOPPING)).order_by("-pk")
    for run in active[:most]:
        with contextlib.suppress(RunFinished):
            request_stop(run=run, by=by, now=now, detail=said)
