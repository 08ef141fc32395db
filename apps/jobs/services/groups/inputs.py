"""One run of a job for each row of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from apps.core.actors import Actor
from apps.core.schema_forms import names_in_order, secret_names
from apps.jobs.models import Job
from apps.jobs.services.groups.starting import (
    DEFAULT_CONCURRENCY,
    MOST_RUNS,
    check_concurrency,
    new_group,
    orders_of,
    refuse,
    start_group,
)
from apps.jobs.services.launching import Launch
from apps.jobs.services.locking import locked_job
from apps.jobs.services.parameters import needed_version
from apps.runs.models import Batch
from apps.runs.services import RunOrder
from apps.runs.states import Trigger

Faults = dict[str, list[str]]


@transaction.atomic
def start_inputs(
    *,
    job: Job,
    rows: Sequence[Mapping[str, Any]],
    by: Actor,
    now: datetime,
    concurrency: int = DEFAULT_CONCURRENCY,
    name: str = "",
) -> Batch:
    """Each row is laid over the job's parameters. Nothing is written unless all rows fit; faults are named
    `rows.<row from 1>.<parameter>`."""
    faults: Faults = {}
    check_concurrency(concurrency, faults)
    name = name.strip()
    if len(name) > 200 or not name.isprintable():
        faults["name"] = [_("A name has at most 200 printable characters.")]
    locked = locked_job(job)
    orders, said = _orders(locked, rows, by, now)
    refuse(faults | said)
    batch = new_group(
        job=locked,
        kind=Batch.Kind.INPUTS,
        trigger=Trigger.INPUTS,
        by=by,
        now=now,
        name=name,
        concurrency=concurrency,
        graph={"columns": _columns(locked, rows)},
    )
    return start_group(batch=batch, orders=orders, by=by, now=now)


def check_inputs(*, job: Job, rows: Sequence[Mapping[str, Any]], by: Actor, now: datetime) -> Faults:
    """What `start_inputs` would say of the rows; writes nothing."""
    return _orders(job, rows, by, now)[1]


def _orders(job: Job, rows: Sequence[Mapping[str, Any]], by: Actor, now: datetime) -> tuple[list[RunOrder], Faults]:
    if not rows:
        return [], {"rows": [_("There is no row.")]}
    if len(rows) > MOST_RUNS:
        counts = {"most": MOST_RUNS, "n": len(rows)}
        return [], {"rows": [_("A table has at most %(most)d rows; this one has %(n)d.") % counts]}
    if said := _secret_faults(job, rows):
        return [], said
    launches = [
        Launch(job=job, trigger=Trigger.INPUTS, parameters=row, batch_key=str(number), apart=True, waiting=True)
        for number, row in enumerate(rows, 1)
    ]
    return orders_of(job=job, launches=launches, place=lambda number, _launch: f"rows.{number}", by=by, now=now)


def _secret_faults(job: Job, rows: Sequence[Mapping[str, Any]]) -> Faults:
    """A secret for each row would be kept for ever, and shown in the table beforehand."""
    secret = secret_names(needed_version(job).parameter_schema)
    sentence = _("A secret cannot be part of a table: the job keeps it.")
    return {f"rows.{number}.{name}": [sentence] for number, row in enumerate(rows, 1) for name in row if name in secret}


def _columns(job: Job, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    used = {name for row in rows for name in row}
    return [name for name in names_in_order(needed_version(job).parameter_schema) if name in used]
