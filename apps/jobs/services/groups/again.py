"""The runs of a group that failed, once more."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from apps.core.actors import Actor
from apps.core.errors import Conflict, NotFound
from apps.jobs.services.groups.starting import start_group
from apps.runs.models import Batch, Run
from apps.runs.orders import order_of
from apps.runs.states import State, Trigger

FAILED = (State.FAILED, State.TIMED_OUT, State.LOST)


class NothingFailed(Conflict):
    """There is nothing to run again."""

    code = "nothing_failed"


@transaction.atomic
def run_failed_again(*, batch: Batch, by: Actor, now: datetime, canceled: bool = False) -> Batch:
    """A new group of the same orders, those that failed, timed out or were lost, with `canceled` also those; `origin`
    is the old one. What has been taken up already is not taken up twice."""
    own = Batch.objects.select_for_update(of=("self",), no_key=True).select_related("project").filter(pk=batch.pk)
    locked = own.exclude(kind=Batch.Kind.GRAPH).first()
    if locked is None:
        raise NotFound(_("There is no such object."))
    states = (*FAILED, State.CANCELED) if canceled else FAILED
    taken = Run.objects.filter(batch__origin=locked).values("batch_key")
    runs = Run.objects.filter(batch=locked, state__in=states).exclude(batch_key__in=taken).order_by("pk")
    found = list(runs.select_related("project", "spider", "version__spider"))
    if not found:
        raise NothingFailed(_("Nothing in this group is left to be run again."))
    orders = [
        replace(order_of(run, trigger=Trigger(run.trigger)), batch_key=run.batch_key, apart=True) for run in found
    ]
    again = Batch(
        project=locked.project,
        job_id=locked.job_id,
        job_name=locked.job_name,
        kind=locked.kind,
        name=locked.name,
        graph=locked.graph,
        concurrency=locked.concurrency,
        trigger=locked.trigger,
        requested_by_id=by.user_id,
        actor=str(by)[:200],
        schedule_id=locked.schedule_id,
        origin=locked,
        created_at=now,
    )
    return start_group(batch=again, orders=orders, by=by, now=now)
