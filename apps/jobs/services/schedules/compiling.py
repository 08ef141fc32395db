"""From the rows of django-celery-beat to what is fired."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import CharField, F
from django.db.models.functions import Cast
from django.utils import translation
from django.utils.translation import gettext as _
from django_celery_beat.models import PeriodicTask

from apps.jobs.models import FIRE_TASK, Schedule, ScheduleType
from apps.jobs.selectors.due import fire_at, rule_for, slot_after
from apps.jobs.services.schedules.rows import CRON_COLUMNS, PERIODS
from apps.jobs.timing import BadRule, check_cron, joined

logger = logging.getLogger(__name__)

_SIZES = dict(PERIODS)
_PLAIN = ("id", "task", "enabled", "start_time", "expires", "one_off", "crontab_id", "interval_id", "clocked_id")
_CRONTAB = {column: f"crontab__{column}" for column in CRON_COLUMNS}
COMPILED = (
    "type", "expression", "typed", "every_seconds", "anchor_at", "once_at", "timezone", "start_at", "end_at", "enabled",
    "next_slot_at", "next_fire_at", "stale", "trouble",
)  # fmt: skip


def recompile(*, schedule: Schedule, now: datetime) -> None:
    """Read one anew; see `recompile_all`."""
    recompile_all(schedules=[schedule], now=now)


def recompile_all(*, schedules: Sequence[Schedule], now: datetime) -> None:
    """Read them from their rows anew and reckon their next times from now on: what is past stays past.

    The caller holds the locks of the schedules, and has accounted for what was overdue by their rules of before. One
    that cannot be compiled is left with its trouble and without a next time.
    """
    rows = _rows([schedule.task_id for schedule in schedules])
    compiled = [schedule for schedule in schedules if schedule.task_id in rows]
    for schedule in compiled:
        _take(schedule, rows[schedule.task_id], now)
        aim(schedule, now)
        schedule.stale = False
    Schedule.objects.bulk_update(compiled, COMPILED, batch_size=500)


def aim(schedule: Schedule, now: datetime) -> None:
    """Its next time after now, if it has any."""
    slot = None
    if schedule.enabled and not schedule.trouble:
        try:
            slot = slot_after(schedule, now)
        except BadRule as error:
            _trouble(schedule, error.message)
    schedule.next_slot_at = slot
    schedule.next_fire_at = fire_at(schedule, slot) if slot else None


def anchor_of(schedule: Schedule, now: datetime) -> datetime:
    """Intervals are counted from the first day, else from when they were said."""
    return (schedule.start_at or now).replace(microsecond=0)


def _rows(task_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    rows = PeriodicTask.objects.filter(pk__in=task_ids).values(
        *_PLAIN,
        "solar_id",
        *_CRONTAB.values(),
        every=F("interval__every"),
        period=F("interval__period"),
        at=F("clocked__clocked_time"),
        # As text: the column's own type refuses to be read when it holds an unknown zone.
        zone=Cast("crontab__timezone", CharField()),
    )
    return {row["id"]: row for row in rows}


def _take(schedule: Schedule, row: Mapping[str, Any], now: datetime) -> None:
    before = (schedule.type, schedule.every_seconds, schedule.start_at)
    schedule.enabled, schedule.trouble = row["enabled"], ""
    schedule.start_at, schedule.end_at = row["start_time"], row["expires"]
    try:
        # The sentence is kept for the log and shown to everybody alike.
        with translation.override("en"):
            _take_rule(schedule, row)
            if schedule.type == ScheduleType.INTERVAL and before != (
                schedule.type, schedule.every_seconds, schedule.start_at
            ):  # fmt: skip
                schedule.anchor_at = anchor_of(schedule, now)
            rule_for(schedule)
    except BadRule as error:
        _trouble(schedule, error.message)


def _trouble(schedule: Schedule, sentence: str) -> None:
    schedule.trouble = sentence
    logger.warning("schedule %d cannot fire: %s", schedule.pk, sentence)


def _take_rule(schedule: Schedule, row: Mapping[str, Any]) -> None:
    """The rule by the columns of a schedule, or BadRule."""
    if row["task"] != FIRE_TASK:
        raise BadRule("task", _("Its periodic task runs “%(task)s” and not the job.") % {"task": row["task"][:100]})
    if row["crontab_id"] is not None:
        _take_cron(schedule, row)
    elif row["interval_id"] is not None:
        _take_interval(schedule, row)
    elif row["clocked_id"] is not None:
        schedule.type, schedule.once_at = ScheduleType.ONCE, row["at"]
        schedule.expression, schedule.every_seconds, schedule.anchor_at = "", None, None
        schedule.typed = ""
    elif row["solar_id"] is not None:
        raise BadRule("solar", _("Jobs do not run by the sun."))
    else:
        raise BadRule("type", _("Its periodic task says no time."))
    if row["one_off"] and row["clocked_id"] is None:
        raise BadRule("one_off", _("Only a date is for one time: untick “One-off task” of its periodic task."))


def _take_cron(schedule: Schedule, row: Mapping[str, Any]) -> None:
    text = joined(**{column: row[name] for column, name in _CRONTAB.items()})
    schedule.type, schedule.timezone = ScheduleType.CRON, row["zone"]
    schedule.every_seconds, schedule.anchor_at, schedule.once_at = None, None, None
    if text != schedule.expression:
        schedule.expression, schedule.typed = text[:500], ""
        schedule.expression = check_cron(text, seed=schedule.pk)


def _take_interval(schedule: Schedule, row: Mapping[str, Any]) -> None:
    if row["period"] not in _SIZES or row["every"] < 1:
        raise BadRule("every", _("An interval is counted in seconds or longer units."))
    schedule.type, schedule.every_seconds = ScheduleType.INTERVAL, row["every"] * _SIZES[row["period"]]
    schedule.expression, schedule.typed, schedule.once_at = "", "", None
