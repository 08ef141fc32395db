"""What all groups begin with: orders for all their runs, then the rows, then the first ones into the queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import prefetch_related_objects
from django.utils.translation import gettext as _

from apps.core.actors import Actor
from apps.core.changes import ADDITION, note_change
from apps.core.errors import Invalid
from apps.jobs.models import Job
from apps.jobs.services.groups.releasing import release
from apps.jobs.services.launching import Launch, order_of_launch
from apps.jobs.services.parameters import NoVersion
from apps.runs.models import Batch
from apps.runs.services import RunOrder, request_runs
from apps.runs.states import Trigger

MOST_RUNS = 1000
MOST_AT_ONCE = 1000
# Nobody reads more, and the answer is to stay small.
MOST_FAULTY = 100
DEFAULT_CONCURRENCY = 2


def orders_of(
    *, job: Job, launches: Iterable[Launch], place: Callable[[int, Launch], str], by: Actor, now: datetime
) -> tuple[list[RunOrder], dict[str, list[str]]]:
    """The orders, and what is wrong with launches, named by their `place`. Reads and checks only."""
    # All of them share the job's pools.
    prefetch_related_objects([job], "pools")
    orders: list[RunOrder] = []
    faults: dict[str, list[str]] = {}
    faulty = 0
    for number, wanted in enumerate(launches, 1):
        try:
            orders.append(order_of_launch(job=job, wanted=wanted, by=by, now=now)[0])
        except NoVersion:
            raise
        except Invalid as error:
            where = place(number, wanted)
            for name, said in (error.fields or {"": [error.message]}).items():
                inner = name.removeprefix("parameters").removeprefix(".")
                faults[f"{where}.{inner}" if inner else where] = said
            faulty += 1
            if faulty >= MOST_FAULTY:
                break
    return orders, faults


def start_group(*, batch: Batch, orders: Sequence[RunOrder], by: Actor, now: datetime) -> Batch:
    """Insert the group with its runs, all waiting, and let the first of them go."""
    batch.save(force_insert=True)
    request_runs(orders=[replace(order, batch_id=batch.pk) for order in orders], by=by, now=now, waiting=True)
    note_change(batch, by, f"started: {len(orders)}", ADDITION)
    # Nobody else sees the new row yet: that is as good as its lock.
    release(batch=batch, now=now)
    return batch


def new_group(*, job: Job, kind: str, trigger: Trigger, by: Actor, now: datetime, **more: Any) -> Batch:
    return Batch(
        project=job.project,
        job=job,
        job_name=job.name,
        kind=kind,
        trigger=trigger,
        requested_by_id=by.user_id,
        actor=str(by)[:200],
        created_at=now,
        **more,
    )


def check_concurrency(value: Any, faults: dict[str, list[str]]) -> None:
    _check_whole(value, "concurrency", 1, MOST_AT_ONCE, faults)


def check_priority(value: Any, faults: dict[str, list[str]]) -> None:
    if value is not None:
        _check_whole(value, "priority", 1, 9, faults)


def _check_whole(value: Any, name: str, least: int, most: int, faults: dict[str, list[str]]) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        bounds = {"least": least, "most": most}
        faults[name] = [_("This is a whole number from %(least)d to %(most)d.") % bounds]


def refuse(faults: dict[str, list[str]]) -> None:
    if faults:
        raise Invalid(next(iter(faults.values()))[0], fields=faults)
