"""What is changed in the tables of beat, by whoever, is what fires."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import translation
from django_celery_beat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask

from apps.core.actors import Actor
from apps.jobs.models import Schedule
from apps.jobs.services.schedules import recompile, recompile_all, update_schedule
from tests.apps.jobs.schedules.conftest import Make

pytestmark = pytest.mark.django_db

NOON = datetime(2031, 5, 6, 12, tzinfo=UTC)
ONE = datetime(2031, 5, 6, 13, tzinfo=UTC)


def stored(schedule: Schedule) -> Schedule:
    return Schedule.objects.get(pk=schedule.pk)


def compiled(schedule: Schedule, *, now: datetime = NOON) -> Schedule:
    """As the clock does it."""
    found = stored(schedule)
    assert found.stale
    recompile(schedule=found, now=now)
    return stored(schedule)


def test_a_changed_crontab_makes_its_schedule_stale(make: Make) -> None:
    made = make(now=NOON, cron="0 3 * * *")
    CrontabSchedule.objects.filter(pk=made.task.crontab_id).update(hour="5")

    again = compiled(made)

    assert (again.expression, again.typed) == ("0 5 * * *", "")
    assert again.next_slot_at == again.next_fire_at == datetime(2031, 5, 7, 5, tzinfo=UTC)
    assert not again.stale


def test_a_shared_crontab_moves_all_of_its_schedules(make: Make) -> None:
    both = [make(now=NOON), make(now=NOON)]
    other = make(now=NOON, cron="0 4 * * *")
    crontab = CrontabSchedule.objects.get(pk=both[0].task.crontab_id)
    crontab.hour = "5"
    crontab.save()

    stale = Schedule.objects.filter(stale=True)
    assert {each.pk for each in stale} == {each.pk for each in both}
    recompile_all(schedules=list(stale), now=NOON)

    assert {stored(each).next_slot_at for each in both} == {datetime(2031, 5, 7, 5, tzinfo=UTC)}
    assert stored(other).next_slot_at == datetime(2031, 5, 7, 4, tzinfo=UTC)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"enabled": False}, None),
        ({"start_time": NOON + timedelta(days=7)}, datetime(2031, 5, 14, 3, tzinfo=UTC)),
        ({"expires": NOON + timedelta(hours=1)}, None),
    ],
    ids=["disabled", "starts later", "ends"],
)
def test_a_changed_task_is_followed(make: Make, change: dict[str, Any], expected: datetime | None) -> None:
    made = make(now=NOON)
    PeriodicTask.objects.filter(pk=made.task_id).update(**change)

    assert compiled(made).next_slot_at == expected


def test_what_does_not_concern_the_time_makes_nothing_stale(make: Make) -> None:
    made = make()
    task = PeriodicTask.objects.get(pk=made.task_id)
    task.description, task.name, task.last_run_at, task.total_run_count = "x", "renamed", NOON, 9
    task.save()
    CrontabSchedule.objects.get(pk=task.crontab_id).save()

    assert not stored(made).stale


def test_enabled_again_the_past_stays_past(make: Make) -> None:
    made = make(now=NOON, cron="0 * * * *")
    PeriodicTask.objects.filter(pk=made.task_id).update(enabled=False)
    compiled(made)
    PeriodicTask.objects.filter(pk=made.task_id).update(enabled=True)

    assert compiled(made, now=NOON + timedelta(hours=6, minutes=1)).next_slot_at == NOON + timedelta(hours=7)


def test_another_kind_of_row_makes_another_type(make: Make) -> None:
    made = make(now=NOON, timezone="Asia/Tokyo")
    task = PeriodicTask.objects.get(pk=made.task_id)
    task.crontab, task.interval = None, IntervalSchedule.objects.create(every=2, period="hours")
    task.save()

    again = compiled(made)
    assert (again.type, again.every_seconds, again.expression, again.timezone) == ("interval", 7200, "", "Asia/Tokyo")
    assert again.next_slot_at == NOON + timedelta(hours=2)

    task.interval, task.clocked, task.one_off = None, ClockedSchedule.objects.create(clocked_time=ONE), True
    task.save()
    again = compiled(made)
    assert (again.type, again.every_seconds, again.next_slot_at) == ("once", None, ONE)

    ClockedSchedule.objects.update(clocked_time=ONE + timedelta(hours=1))
    assert compiled(made).next_slot_at == ONE + timedelta(hours=1)


def test_a_changed_interval_is_counted_from_then(make: Make) -> None:
    made = make(now=NOON, type="interval", every=3600)
    IntervalSchedule.objects.filter(pk=made.task.interval_id).update(every=10, period="minutes")

    again = compiled(made, now=NOON + timedelta(minutes=3))

    assert again.next_slot_at == NOON + timedelta(minutes=13)


def test_what_a_person_typed_is_kept_while_it_stands_for_the_same(make: Make) -> None:
    made = make(now=NOON, cron="~ 3 * * *")
    PeriodicTask.objects.filter(pk=made.task_id).update(start_time=NOON)

    assert compiled(made).typed == "~ 3 * * *"


# -- what cannot fire ---------------------------------------------------------------------------------------------


def broken(schedule: Schedule, sql: str) -> Schedule:
    with connection.cursor() as cursor:
        cursor.execute(sql, [schedule.task_id])
    return compiled(schedule)


CRONTAB = (
    "UPDATE django_celery_beat_crontabschedule SET {} WHERE id = "
    "(SELECT crontab_id FROM django_celery_beat_periodictask WHERE id = %s)"
)
INTERVAL = CRONTAB.replace("crontab", "interval")
TASK = "UPDATE django_celery_beat_periodictask SET {} WHERE id = %s"
BROKEN = [
    (CRONTAB.format("timezone = 'Mars/Olympus'"), "no time zone"),
    (CRONTAB.format("timezone = ''"), "no time zone"),
    (CRONTAB.format("minute = '61'"), "61"),
    (CRONTAB.format("minute = repeat('1,', 119) || '1', hour = repeat('1,', 47) || '1'"), ""),
    (CRONTAB.format("day_of_month = repeat('9', 124), hour = repeat('9', 96), minute = repeat('9', 240)"), "999"),
    (CRONTAB.format("day_of_month = '31', month_of_year = '2'"), "31"),
    (CRONTAB.format("day_of_week = E'x\\ny'"), "XY"),
    (TASK.format("crontab_id = NULL"), "says no time"),
    (TASK.format("task = 'runs.sweep'"), "runs.sweep"),
    (TASK.format("one_off = true"), "One-off"),
]


@pytest.mark.parametrize(("sql", "word"), BROKEN, ids=[sql[27:90] for sql, _word in BROKEN])
def test_a_broken_one_says_why_and_has_no_next_time(make: Make, sql: str, word: str) -> None:
    with translation.override("zh-hans"):
        found = broken(make(now=NOON), sql)

    assert word in found.trouble
    assert bool(found.trouble) == (found.next_slot_at is None) == (found.next_fire_at is None)


@pytest.mark.parametrize(
    "change", ["every = 0", "every = -3", "period = 'microseconds'", "every = 2147483647, period = 'days'"]
)
def test_a_broken_interval_says_why(make: Make, change: str) -> None:
    found = broken(make(now=NOON, type="interval", every=60), INTERVAL.format(change))

    assert found.trouble
    assert found.next_slot_at is None


def test_a_broken_one_does_not_stop_others_and_can_be_mended(make: Make, by: Actor) -> None:
    bad, good = make(now=NOON, cron="1 3 * * *"), make(now=NOON, cron="2 3 * * *")
    CrontabSchedule.objects.filter(minute="1").update(minute="99")
    CrontabSchedule.objects.filter(minute="2").update(minute="3")

    recompile_all(schedules=list(Schedule.objects.filter(stale=True)), now=NOON)
    assert stored(bad).next_slot_at is None
    assert stored(good).next_slot_at == datetime(2031, 5, 7, 3, 3, tzinfo=UTC)

    CrontabSchedule.objects.filter(minute="99").update(minute="9")
    mended = compiled(bad)
    assert (mended.trouble, mended.next_slot_at) == ("", datetime(2031, 5, 7, 3, 9, tzinfo=UTC))


def test_a_broken_one_can_be_mended_on_the_pages_too(make: Make, by: Actor) -> None:
    found = broken(make(now=NOON), CRONTAB.format("timezone = 'Mars/Olympus'"))

    mended = update_schedule(schedule=found, by=by, now=NOON, timezone="UTC", cron="0 3 * * *")

    assert (mended.trouble, mended.next_slot_at) == ("", datetime(2031, 5, 7, 3, tzinfo=UTC))


@pytest.mark.parametrize("sql", [sql for sql, word in BROKEN if word])
def test_a_broken_one_can_be_switched_off_and_renamed_as_it_is(make: Make, by: Actor, sql: str) -> None:
    found = broken(make(now=NOON), sql)

    off = update_schedule(schedule=found, by=by, now=NOON, enabled=False, name="later")
    on = update_schedule(schedule=found, by=by, now=NOON, enabled=True)

    assert (off.enabled, on.enabled, on.name, on.next_slot_at) == (False, True, "later", None)
    assert on.trouble == found.trouble


def test_a_page_does_not_undo_what_was_just_changed_in_the_admin(make: Make, by: Actor) -> None:
    made = make(now=NOON, cron="0 3 * * *")
    CrontabSchedule.objects.filter(pk=made.task.crontab_id).update(hour="5")

    update_schedule(schedule=made, by=by, now=NOON, name="later")

    assert stored(made).expression == "0 5 * * *"
    assert not stored(made).stale


def test_many_are_compiled_in_few_statements(make: Make, django_assert_max_num_queries: Any) -> None:
    for _n in range(20):
        make(now=NOON)
    CrontabSchedule.objects.update(hour="5")
    found = list(Schedule.objects.filter(stale=True))
    assert len(found) == 20

    with django_assert_max_num_queries(4):
        recompile_all(schedules=found, now=NOON)


def test_the_triggers_stand_on_the_tables_of_beat_and_of_schedules() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname LIKE 'claw\\_t%' "
            "OR tgname = 'claw_schedule_deleted' ORDER BY 1"
        )
        assert [table for (table,) in cursor.fetchall()] == [
            "django_celery_beat_clockedschedule",
            "django_celery_beat_crontabschedule",
            "django_celery_beat_intervalschedule",
            "django_celery_beat_periodictask",
            "jobs_schedule",
        ]
