"""Asking for a run of a job."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from apps.core.actors import Actor
from apps.jobs.models import Job
from apps.jobs.services.batches.starting import edges_of_batch, start_batch
from apps.jobs.services.launching import Launch, order_of_launch
from apps.jobs.services.locking import locked_job
from apps.jobs.services.overlap import settle_overlap
from apps.jobs.services.rendering import request_preparation
from apps.runs.models import Run
from apps.runs.services import request_run
from apps.runs.states import State

__all__ = ["Launch", "launch", "run_job"]


def run_job(
    *,
    job: Job,
    by: Actor,
    now: datetime,
    trigger: str,
    parameters: Mapping[str, Any] | None = None,
    secrets: Mapping[str, str | None] | None = None,
    idempotency_key: str | None = None,
    complete: bool = False,
    extra_env: Mapping[str, str] | None = None,
) -> tuple[Run, bool]:
    """Launch a job by itself; see `launch`."""
    wanted = Launch(
        job=job,
        trigger=trigger,
        parameters=parameters or {},
        secrets=secrets or {},
        idempotency_key=idempotency_key,
        complete=complete,
        extra_env=extra_env or {},
    )
    return launch(wanted=wanted, by=by, now=now)


@transaction.atomic
def launch(*, wanted: Launch, by: Actor, now: datetime) -> tuple[Run, bool]:
    """The run, and whether it is new. While an earlier run is active the job may say that the new one is skipped: it is
    answered like any other, in the state `skipped`. Else a batch begins with it, if other jobs follow this one.

    Raises Invalid when the parameters do not fit; nothing is written then.
    """
    edges = edges_of_batch(wanted=wanted)
    locked = locked_job(wanted.job)
    order, ready = order_of_launch(job=locked, wanted=wanted, by=by, now=now)
    run, new = request_run(
        order=order, by=by, now=now, idempotency_key=wanted.idempotency_key, waiting=wanted.waiting or not ready
    )
    if new and not wanted.batch_id:
        settle_overlap(locked, run, by=by, now=now)
        if run.state != State.SKIPPED:
            start_batch(root=run, job=locked, wanted=wanted, edges=edges, by=by, now=now)
        if run.state == State.WAITING and not wanted.waiting:
            request_preparation(run.pk)
    return run, new
