"""What becomes of a new run while earlier ones of its job are not over."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from apps.core.actors import Actor
from apps.jobs.models import Job, Overlap
from apps.runs.models import Run
from apps.runs.services import RunFinished, move, request_stop
from apps.runs.states import ACTIVE, State, Trigger

# Of a job that says nothing else, the most runs that wait.
MOST_WAITING = 100


def job_limit(job: Job) -> int | None:
    """The most runs of the job that may run at once, as placement keeps it."""
    return job.overlap_max if job.overlap == Overlap.ALLOW else 1


def earlier_runs(job_ids: Collection[int]) -> QuerySet[Run]:
    """The runs that a new one of their job minds.

    What waits for its turn in a batch, or has a limit of its own there, is no earlier run.
    """
    active = Run.objects.filter(job__in=job_ids, state__in=ACTIVE, apart=False)
    return active.exclude(state=State.WAITING, trigger=Trigger.UPSTREAM)


def refusal(job: Job, *, active: int, first: int | None) -> dict[str, Any] | None:
    """Why a new run is skipped while so many earlier ones are active, as values of its sentence; None: it is not."""
    if job.overlap == Overlap.SKIP and active:
        return {"run": first}
    if job.overlap == Overlap.QUEUE:
        # The first of them runs or is about to: it does not wait for another.
        waiting, most = active - 1, job.overlap_max or MOST_WAITING
        return {"waiting": waiting, "max": most} if waiting >= most else None
    return None


def settle_overlap(job: Job, run: Run, *, by: Actor, now: datetime) -> None:
    """Skip the new run, or end the earlier ones, as the job says.

    The caller holds the lock on the job's row: launches of a job come one after the other, so what is counted is true.
    """
    if job.overlap == Overlap.ALLOW or run.apart:
        return
    # Without LIMIT: with it the database walks the job's whole past, of which it expects the first row to fit.
    earlier = list(earlier_runs([job.pk]).exclude(pk=run.pk).order_by("pk").values_list("pk", flat=True))
    if job.overlap == Overlap.REPLACE:
        for each in Run.objects.filter(pk__in=earlier).order_by("pk"):
            with contextlib.suppress(RunFinished):
                request_stop(run=each, by=by, now=now, cause="replaced", detail={"run": run.pk})
    elif detail := refusal(job, active=len(earlier), first=min(earlier, default=None)):
        _skip(run, by=by, now=now, detail=detail)


def _skip(run: Run, *, by: Actor, now: datetime, detail: dict[str, Any]) -> None:
    move(
        run_id=run.pk,
        to=State.SKIPPED,
        frm=(State.WAITING, State.QUEUED),
        now=now,
        actor=by,
        reason="overlap_skip",
        detail=detail,
    )
    run.refresh_from_db()
