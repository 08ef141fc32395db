"""Schedules and jobs for tests of groups."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django_celery_beat.models import IntervalSchedule, PeriodicTask

from apps.jobs.models import Job, Schedule
from apps.runs.models import Batch, Run
from apps.runs.states import State
from tests.factories import JobFactory, SpiderFactory

SCHEMA = {
    "type": "object",
    "required": ["keyword"],
    "properties": {
        "keyword": {"type": "string", "minLength": 1},
        "pages": {"type": "integer", "minimum": 1, "default": 3},
        "day": {"type": "string", "format": "date"},
        "token": {"type": "string", "writeOnly": True},
    },
    "x-order": ["keyword", "pages", "day", "token"],
}


def searching(**fields: Any) -> Job:
    """A job that looks for a keyword."""
    fields = {"parameters": {"keyword": "sea"}, **fields}
    return JobFactory(spider=SpiderFactory(version__parameter_schema=SCHEMA), **fields)


def schedule_of(job: Job, **fields: Any) -> Schedule:
    """Daily at 00:05 in UTC, unless said otherwise; as it is compiled, without a way to change it."""
    every = IntervalSchedule.objects.create(every=1, period="days")
    task = PeriodicTask.objects.create(name=f"of job {job.pk} {PeriodicTask.objects.count()}", interval=every)
    fields = {"type": "cron", "expression": "5 0 * * *", **fields}
    long_ago = datetime(2026, 1, 1, tzinfo=UTC)
    return Schedule.objects.create(job=job, task=task, created_at=long_ago, updated_at=long_ago, **fields)


def runs_of(batch: Batch) -> list[Run]:
    return list(Run.objects.filter(batch=batch).order_by("pk"))


def states_of(batch: Batch) -> list[str]:
    return [str(run.state) for run in runs_of(batch)]


def end(runs: Sequence[Run], state: State = State.SUCCEEDED) -> None:
    """As the agent would leave them, past `move()`."""
    Run.objects.filter(pk__in=[run.pk for run in runs]).update(state=state)
