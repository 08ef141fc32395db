"""Schedules for tests of the clock: everything is told by a `now` that the test moves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from apps.core.actors import Actor
from apps.jobs.models import Firing, Job, Schedule
from apps.jobs.services.firing import Keeper, look
from apps.jobs.services.schedules import create_schedule
from tests.factories import JobFactory, SpiderFactory

TESTER = Actor("user", "tester")
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def schedule(
    *,
    job: Job | None = None,
    now: datetime = NOON,
    overlap: str = "allow",
    spider: dict[str, Any] | None = None,
    given: dict[str, Any] | None = None,
    **wanted: Any,
) -> Schedule:
    """Every minute, if nothing else is said; made a second after noon. `spider` shapes it, `given` has the job's
    parameters."""
    if not wanted.keys() & {"cron", "every", "at"}:
        wanted["cron"] = "* * * * *"
    kind = "cron" if "cron" in wanted else "interval" if "every" in wanted else "once"
    if job is None:
        job = JobFactory(overlap=overlap, parameters=given or {}, spider=SpiderFactory(**(spider or {})))
    return create_schedule(job=job, by=TESTER, now=now + timedelta(seconds=1), type=kind, **wanted)


def ticks(now: datetime, *, keeper: Keeper | None = None, most: int = 50) -> int:
    """Look until nothing is due; how many schedules were moved on."""
    keeper = keeper or Keeper()
    moved = 0
    for _ in range(most):
        done = look(keeper=keeper, now=now)
        moved += done.moved
        if not done.moved and done.seconds:
            return moved
    raise AssertionError("the clock does not come to rest")


def ledger(of: Schedule) -> list[tuple[str, str, str]]:
    """Local times, outcomes and reasons, oldest first."""
    rows = Firing.objects.filter(schedule=of).order_by("scheduled_for")
    return [(f"{row.scheduled_for:%H:%M:%S}".removesuffix(":00"), row.outcome, row.reason) for row in rows]
