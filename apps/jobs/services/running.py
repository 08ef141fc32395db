"""Asking for a run of a job."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from apps.core.actors import Actor
from apps.core.schema_forms import secret_names, split_secrets, with_defaults
from apps.jobs.models import Job
from apps.jobs.services.locking import locked_job
from apps.jobs.services.overlap import job_limit, settle_overlap
from apps.jobs.services.parameters import check_parameters, kept_for_run, needed_version
from apps.runs.models import Run
from apps.runs.policies import RetryPolicy
from apps.runs.services import RunOrder, request_run
from apps.runs.states import Trigger
from apps.spiders.models import Version


@transaction.atomic
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
    """A run with the job's parameters, `parameters` laid over them, or in their place where they are `complete`.

    The flag says whether the run is new. While an earlier run is active the job may say that the new one is skipped:
    it is answered like any other, in the state `skipped`.
    """
    locked = locked_job(job)
    version = needed_version(locked)
    schema = version.parameter_schema
    plain, typed = split_secrets(schema, parameters or {})
    typed |= secrets or {}
    # A job may be older than the version: what the schema does not know any more stays out of the run.
    known = () if complete else schema.get("properties", {}).keys()
    ours = {name: value for name, value in locked.parameters.items() if name in known}
    whole = {**ours, **plain}
    stored = {name: pk for name, pk in locked.secrets.items() if name in secret_names(schema) and name not in typed}
    check_parameters(schema, whole, typed=typed, stored=stored)
    ids = {**stored, **kept_for_run(locked, typed, by=by, now=now, idempotency_key=idempotency_key)}
    order = _order(
        locked,
        version,
        Trigger(trigger),
        parameters=with_defaults(schema, whole),
        secrets=ids,
        env={**locked.env, **(extra_env or {})},
    )
    run, new = request_run(order=order, by=by, now=now, idempotency_key=idempotency_key)
    if new:
        settle_overlap(locked, run, by=by, now=now)
    return run, new


def _order(
    job: Job,
    version: Version,
    trigger: Trigger,
    *,
    parameters: Mapping[str, Any],
    secrets: Mapping[str, int],
    env: Mapping[str, str],
) -> RunOrder:
    """All that the run needs of the job, copied."""
    return RunOrder(
        version=version,
        trigger=trigger,
        project=job.project,
        job_id=job.pk,
        job_name=job.name,
        parameters=parameters,
        secrets=secrets,
        env=env,
        memory_mb=job.memory_mb,
        cpus=job.cpus,
        timeout_seconds=job.timeout_seconds,
        grace_seconds=job.grace_seconds,
        start_seconds=job.start_seconds,
        idle_seconds=job.idle_seconds,
        total_seconds=job.total_seconds,
        queue_seconds=job.queue_seconds,
        pause_seconds=job.pause_seconds,
        priority=job.priority,
        exit_codes=version.exit_codes,
        retry=RetryPolicy.read(job.retry),
        on_node_lost=job.on_node_lost,
        pools=tuple(job.pools.order_by("pk").values_list("pk", flat=True)),
        selector=job.selector,
        job_limit=job_limit(job),
        # The run of a repair job is not repaired itself: a fault in both would go round for ever.
        repair_job_id=None if trigger == Trigger.REPAIR else job.repair_job_id,
    )
