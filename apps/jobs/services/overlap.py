"""What becomes of a new run while earlier ones of its job are not over."""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import Any

from apps.core.actors import Actor
from apps.jobs.models import Job, Overlap
from apps.runs.models import Run
from apps.runs.services import RunFinished, move, request_stop
from apps.runs.states import ACTIVE, State

# Of a job that says nothing else, the most runs that wait.
MOST_WAITING = 100


def job_limit(job: Job) -> int | None:
    """The most runs of the job that may run at once, as placement keeps it."""
    return job.overlap_max if job.overlap == Overlap.ALLOW else 1


def settle_overlap(job: Job, run: Run, *, by: Actor, now: datetime) -> None:
    """Skip the new run, or end the earlier ones, as the job says.

    The caller holds the lock on the job's row: launches of a job come one after the other, so what is counted is true.
    What waits for its turn in a batch, or has a limit of its own there, is no earlier run.
    """
    if job.overlap == Overlap.ALLOW:
        return
    if run.apart:
        return
    earlier = Run.objects.filter(job=job, state__in=ACTIVE, apart=False).exclude(pk=run.pk)
    earlier = earlier.exclude(state=State.WAITING, batch__isnull=False)
    if job.overlap == Overlap.REPLACE:
        for each in earlier.order_by("pk"):
            with contextlib.suppress(RunFinished):
                request_stop(run=each, by=by, now=now, cause="replaced", detail={"run": run.pk})
    elif job.overlap == Overlap.QUEUE:
        # The first of them runs or is about to: it does not wait for another.
        waiting, most = earlier.count() - 1, job.overlap_max or MOST_WAITING
        if waiting >= most:
            _skip(run, by=by, now=now, detail={"waiting": waiting, "max": most})
    # Without LIMIT: with it the database walks the job's whole past, of which it expects the first row to fit.
    elif active := list(earlier.values_list("pk", flat=True)):
        _skip(run, by=by, now=now, detail={"run": min(active)})


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
