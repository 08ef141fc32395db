"""From a job and what is wanted of it to the order of a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from apps.core.actors import Actor
from apps.core.schema_forms import secret_names, split_secrets, with_defaults
from apps.jobs.models import Job
from apps.jobs.services.overlap import job_limit
from apps.jobs.services.parameters import check_parameters, kept_for_run, needed_version
from apps.jobs.services.rendering import Filled, filled_in
from apps.runs.policies import RetryPolicy
from apps.runs.services import RunOrder
from apps.runs.states import Trigger
from apps.spiders.models import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One run that is asked for: `parameters` laid over the job's, or in their place where they are `complete`.

    Templates in the parameters that are named `literal` are not filled in: whoever sent them is no user of the panel.
    `scheduled_for` is the instant that dates in templates are of (None: now), in the time zone `zone`. A run that is
    `apart` neither minds other runs of its job nor do they mind it: its batch has a limit of its own. One that is told
    to be `waiting` is not queued before its batch says so.
    """

    job: Job
    trigger: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str | None] = field(default_factory=dict)
    complete: bool = False
    literal: Collection[str] = ()
    extra_env: Mapping[str, str] = field(default_factory=dict)
    idempotency_key: str | None = None
    schedule_id: int | None = None
    scheduled_for: datetime | None = None
    zone: str = "UTC"
    batch_id: int | None = None
    batch_key: str = ""
    apart: bool = False
    waiting: bool = False
    priority: int | None = None


def order_of_launch(
    *, job: Job, wanted: Launch, by: Actor, now: datetime, pools: Sequence[int] | None = None
) -> tuple[RunOrder, bool]:
    """The order, and whether all its templates are filled in. The caller holds the lock on the job's row.

    `pools` are those of the job, where they are known already.
    """
    version = needed_version(job)
    schema = version.parameter_schema
    plain, typed = split_secrets(schema, wanted.parameters)
    typed |= wanted.secrets
    # A job may be older than the version: what the schema does not know any more stays out of the run.
    known = () if wanted.complete else schema.get("properties", {}).keys()
    ours = {name: value for name, value in job.parameters.items() if name in known}
    whole = with_defaults(schema, {**ours, **plain})
    stored = {name: pk for name, pk in job.secrets.items() if name in secret_names(schema) and name not in typed}
    instant = wanted.scheduled_for or now
    filled = filled_in(
        job=job,
        version=version,
        parameters=whole,
        env={**job.env, **wanted.extra_env},
        instant=instant,
        zone=wanted.zone,
        now=now,
        literal=wanted.literal,
    )
    if filled.ready:
        check_parameters(schema, filled.parameters, typed=typed, stored=stored)
    kept = kept_for_run(job, typed, by=by, now=now, idempotency_key=wanted.idempotency_key)
    known_pools = job.pools.values_list("pk", flat=True) if pools is None else pools
    order = _order(job, version, wanted, filled, {**stored, **kept}, instant, sorted(known_pools))
    return order, filled.ready


def _order(
    job: Job,
    version: Version,
    wanted: Launch,
    filled: Filled,
    secrets: Mapping[str, int],
    instant: datetime,
    pools: Sequence[int],
) -> RunOrder:
    """All that the run needs of the job, copied."""
    trigger = Trigger(wanted.trigger)
    return RunOrder(
        version=version,
        trigger=trigger,
        project=job.project,
        job_id=job.pk,
        job_name=job.name,
        parameters=filled.parameters,
        secrets=secrets,
        env=filled.env,
        arguments=filled.arguments,
        templates=filled.templates,
        zone=wanted.zone,
        instant=instant,
        pending=not filled.ready,
        calls=filled.calls,
        later=filled.later,
        command=filled.command,
        run_id=filled.run_id,
        schedule_id=wanted.schedule_id,
        scheduled_for=wanted.scheduled_for,
        batch_id=wanted.batch_id,
        batch_key=wanted.batch_key,
        apart=wanted.apart,
        memory_mb=job.memory_mb,
        cpus=job.cpus,
        timeout_seconds=job.timeout_seconds,
        grace_seconds=job.grace_seconds,
        start_seconds=job.start_seconds,
        idle_seconds=job.idle_seconds,
        total_seconds=job.total_seconds,
        queue_seconds=job.queue_seconds,
        pause_seconds=job.pause_seconds,
        priority=job.priority if wanted.priority is None else wanted.priority,
        exit_codes=version.exit_codes,
        retry=RetryPolicy.read(job.retry),
        on_node_lost=job.on_node_lost,
        pools=tuple(pools),
        selector=job.selector,
        job_limit=None if wanted.apart else job_limit(job),
        # The run of a repair job is not repaired itself: a fault in both would go round for ever.
        repair_job_id=None if trigger == Trigger.REPAIR else job.repair_job_id,
    )
