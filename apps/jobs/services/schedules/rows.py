"""The rows of django-celery-beat that hold the rule of a schedule, for people to edit."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from zoneinfo import ZoneInfo

from django.db import connection
from django_celery_beat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask

from apps.jobs.models import FIRE_TASK, Job, Schedule, ScheduleType

CRON_COLUMNS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
# The largest unit that says an interval exactly is the easiest to read.
PERIODS = (("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1))
LARGEST_COUNT = 2**31 - 1
_KINDS: dict[str, Any] = {
    "crontab_id": CrontabSchedule,
    "interval_id": IntervalSchedule,
    "clocked_id": ClockedSchedule,
}


def next_number() -> int:
    """The number of a schedule before it is there: its periodic task names it, and it names the task."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(pg_get_serial_sequence('jobs_schedule', 'id'))")
        return int(cursor.fetchone()[0])


def make_rows(schedule: Schedule) -> PeriodicTask:
    """Past `save()` of django-celery-beat, which would make every beat read all its tasks anew: none sends this one."""
    task = PeriodicTask(kwargs=json.dumps({"schedule": schedule.pk}), **_columns(schedule))
    for column, value in _rule_columns(schedule).items():
        setattr(task, column, value)
    return PeriodicTask.objects.bulk_create([task])[0]


def rewrite_rows(schedule: Schedule, *, rule: bool) -> None:
    """What the schedule says into its rows; rows that others use too are left to them. Without its `rule`, what is
    stored of that stays, be it ever so broken."""
    task = PeriodicTask.objects.filter(pk=schedule.task_id)
    if not rule:
        task.update(**_columns(schedule))
        return
    before = used_rows([schedule.task_id])
    task.update(**_columns(schedule), **_rule_columns(schedule))
    drop_unused(before)


def rename_rows(job: Job) -> None:
    """After the job has another name: people look for tasks by it."""
    for pk, task in Schedule.objects.filter(job=job).order_by("task").values_list("pk", "task"):
        PeriodicTask.objects.filter(pk=task).update(name=_task_name(job, pk))


def used_rows(task_ids: Iterable[int]) -> list[dict[str, int | None]]:
    return list(PeriodicTask.objects.filter(pk__in=task_ids).values(*_KINDS))


def drop_unused(used: Iterable[dict[str, int | None]]) -> None:
    """Delete those of the rows that no task uses any more.

    First locked, then looked at anew: from then on nobody can come to use them. One that is locked is just being
    edited or taken into use, and stays.
    """
    for column, model in _KINDS.items():
        wanted = {row[column] for row in used} - {None}
        rows = model.objects.select_for_update(skip_locked=True).filter(pk__in=wanted).order_by("pk")
        if locked := {row.pk for row in rows.only("pk")} if wanted else set():
            in_use = PeriodicTask.objects.filter(**{f"{column}__in": locked}).values_list(column, flat=True)
            # Not `delete()`: it would take along tasks that came to refer to the row.
            unused = model.objects.filter(pk__in=locked - {*in_use})
            unused._raw_delete(unused.db)


def _columns(schedule: Schedule) -> dict[str, Any]:
    return {
        "name": _task_name(schedule.job, schedule.pk),
        "description": schedule.name,
        "enabled": schedule.enabled,
        "start_time": schedule.start_at,
        "expires": schedule.end_at,
        "expire_seconds": None,
    }


def _task_name(job: Job, schedule_pk: int) -> str:
    return f"{job.name[:150]} (schedule {schedule_pk})"


def _rule_columns(schedule: Schedule) -> dict[str, Any]:
    one_off = schedule.type == ScheduleType.ONCE
    return {"task": FIRE_TASK, "one_off": one_off, "solar_id": None, **dict.fromkeys(_KINDS), **_rule(schedule)}


def _rule(schedule: Schedule) -> dict[str, int]:
    if schedule.type == ScheduleType.CRON:
        fields = dict(zip(CRON_COLUMNS, schedule.expression.split(), strict=True))
        return {"crontab_id": _row(CrontabSchedule, timezone=ZoneInfo(schedule.timezone), **fields)}
    if schedule.type == ScheduleType.ONCE:
        return {"clocked_id": _row(ClockedSchedule, clocked_time=schedule.once_at)}
    seconds = schedule.every_seconds or 1
    period, size = next((name, size) for name, size in PERIODS if seconds % size == 0)
    return {"interval_id": _row(IntervalSchedule, every=seconds // size, period=period)}


def _row(model: Any, **values: Any) -> int:
    """One that says the same, else a new one. Locked, so that nobody edits or drops it before this is committed; one
    that somebody has locked is passed over."""
    same = model.objects.select_for_update(skip_locked=True, no_key=True).filter(**values).order_by("pk")
    found = same.values_list("pk", flat=True).first()
    return int(found if found is not None else model.objects.bulk_create([model(**values)])[0].pk)
