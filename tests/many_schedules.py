"""Jobs with schedules by the thousand, past the services, as those would have left them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db import connection
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask

from apps.jobs.models import FIRE_TASK, Job, Schedule, ScheduleType
from apps.jobs.services.schedules.compiling import aim
from apps.jobs.services.schedules.rows import CRON_COLUMNS
from tests.factories import SpiderFactory

_NAME_THEM = """
UPDATE django_celery_beat_periodictask t SET kwargs = json_build_object('schedule', s.id)::text
FROM jobs_schedule s WHERE s.task_id = t.id AND s.id = ANY(%s)
"""
Rule = Callable[[int], dict[str, Any]]


def every(seconds: int, anchor_at: datetime) -> Rule:
    """All of them at the same instants."""
    return lambda _number: {"type": ScheduleType.INTERVAL, "every_seconds": seconds, "anchor_at": anchor_at}


def cron(expression: Callable[[int], str]) -> Rule:
    return lambda number: {"type": ScheduleType.CRON, "expression": expression(number)}


def many_jobs(number: int, *, now: datetime, overlap: str = "allow") -> list[Job]:
    """Of one spider."""
    spider = SpiderFactory()
    known = {"spider": spider, "project": spider.project, "overlap": overlap, "created_at": now, "updated_at": now}
    jobs = [Job(name=f"timed {spider.pk} {each}", **known) for each in range(number)]
    return Job.objects.bulk_create(jobs, batch_size=1000)


def many_schedules(jobs: Sequence[Job], rule: Rule, *, now: datetime, **more: Any) -> list[Schedule]:
    """One for each job."""
    made = [
        Schedule(job=job, created_at=now, updated_at=now, **rule(number), **more) for number, job in enumerate(jobs)
    ]
    rows: dict[tuple[Any, ...], Any] = {}
    tasks = [PeriodicTask(name=f"{FIRE_TASK} {uuid.uuid4()}", task=FIRE_TASK, **_row(each, rows)) for each in made]
    for schedule, task in zip(made, PeriodicTask.objects.bulk_create(tasks, batch_size=1000), strict=True):
        schedule.task = task
        aim(schedule, now)
    Schedule.objects.bulk_create(made, batch_size=1000)
    with connection.cursor() as cursor:
        cursor.execute(_NAME_THEM, [[schedule.pk for schedule in made]])
    return made


def _row(schedule: Schedule, rows: dict[tuple[Any, ...], Any]) -> dict[str, Any]:
    """The row of its rule; those that are alike share one."""
    key = (schedule.expression, schedule.every_seconds)
    if schedule.type == ScheduleType.CRON:
        if key not in rows:
            fields = dict(zip(CRON_COLUMNS, schedule.expression.split(), strict=True))
            rows[key] = CrontabSchedule.objects.create(timezone=ZoneInfo(schedule.timezone), **fields)
        return {"crontab": rows[key]}
    if key not in rows:
        rows[key] = IntervalSchedule.objects.create(every=schedule.every_seconds, period="seconds")
    return {"interval": rows[key]}
