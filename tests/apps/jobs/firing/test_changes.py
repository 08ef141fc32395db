"""Changes of schedules, before and while they are due: the past is never fired, and never silent."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django_celery_beat.models import PeriodicTask

from apps.jobs.models import Firing, Schedule
from apps.jobs.services.schedules import delete_schedule, set_enabled, update_schedule
from apps.runs.models import Run
from tests.apps.jobs.firing.timed import HOUR, MINUTE, NOON, TESTER, ledger, schedule, ticks

pytestmark = pytest.mark.django_db

SECOND = timedelta(seconds=1)


def test_disabled_before_and_enabled_after_a_time_it_was_no_time() -> None:
    own = schedule(cron="0 * * * *")
    set_enabled(schedule=own, by=TESTER, now=NOON + HOUR - MINUTE, enabled=False)
    ticks(NOON + HOUR)
    set_enabled(schedule=own, by=TESTER, now=NOON + HOUR + MINUTE, enabled=True)
    ticks(NOON + HOUR + 2 * MINUTE)
    assert ledger(own) == []
    ticks(NOON + 2 * HOUR)
    assert ledger(own) == [("14:00", "fired", "")]


def test_disabled_while_it_was_due_its_time_is_missed() -> None:
    own = schedule(cron="0 * * * *")
    set_enabled(schedule=own, by=TESTER, now=NOON + HOUR + SECOND, enabled=False)
    ticks(NOON + HOUR + 2 * SECOND)
    assert ledger(own) == [("13:00", "missed", "schedule_changed")]


def test_editing_another_schedule_changes_nothing() -> None:
    own, other = schedule(cron="0 * * * *"), schedule(cron="0 * * * *")
    update_schedule(schedule=other, by=TESTER, now=NOON + MINUTE, cron="30 * * * *")
    PeriodicTask.objects.filter(job_schedule=other).update(enabled=False)
    ticks(NOON + 2 * MINUTE)
    ticks(NOON + HOUR)
    assert (ledger(own), ledger(other)) == ([("13:00", "fired", "")], [])


def test_a_cron_changed_while_it_was_due_fires_from_its_new_times_on() -> None:
    own = schedule(cron="0 * * * *")
    update_schedule(schedule=own, by=TESTER, now=NOON + HOUR + SECOND, cron="*/30 * * * *")
    ticks(NOON + HOUR + 2 * SECOND)
    ticks(NOON + HOUR + 30 * MINUTE)
    assert ledger(own) == [("13:00", "missed", "schedule_changed"), ("13:30", "fired", "")]


def test_what_is_no_rule_may_be_changed_while_it_is_due() -> None:
    own = schedule(cron="0 * * * *")
    update_schedule(schedule=own, by=TESTER, now=NOON + HOUR + SECOND, name="other", jitter=5)
    ticks(NOON + HOUR + 10 * SECOND)
    assert ledger(own) == [("13:00", "fired", "")]


def test_deleted_and_made_again_it_does_not_fire_twice() -> None:
    own = schedule(cron="0 * * * *")
    ticks(NOON + HOUR)
    delete_schedule(schedule=own, by=TESTER, now=NOON + HOUR + SECOND)
    again = schedule(job=own.job, cron="0 * * * *", now=NOON + HOUR + 2 * SECOND)
    ticks(NOON + HOUR + 5 * SECOND)
    assert (Run.objects.count(), Firing.objects.count(), ledger(again)) == (1, 1, [])
    assert Firing.objects.get().schedule is None
    ticks(NOON + 2 * HOUR)
    assert ledger(again) == [("14:00", "fired", "")]


def test_what_was_changed_in_the_rows_of_beat_is_compiled_at_the_next_look() -> None:
    own = schedule(cron="0 * * * *")
    crontab = own.task.crontab
    crontab.minute = "15"
    crontab.save()
    ticks(NOON + MINUTE)
    own.refresh_from_db()
    assert (own.stale, own.expression, own.next_slot_at) == (False, "15 * * * *", NOON + 15 * MINUTE)
    ticks(NOON + 15 * MINUTE)
    assert ledger(own) == [("12:15", "fired", "")]


def test_what_was_changed_there_while_it_was_due_does_not_fire_the_past() -> None:
    own = schedule(cron="0 * * * *")
    PeriodicTask.objects.filter(pk=own.task_id).update(enabled=False)
    ticks(NOON + HOUR + SECOND)
    assert ledger(own) == [("13:00", "missed", "schedule_changed")]
    assert Run.objects.count() == 0


def test_a_rule_that_is_broken_stops_its_own_schedule_only() -> None:
    broken, whole = schedule(), schedule()
    Schedule.objects.filter(pk=broken.pk).update(timezone="Nowhere/Land")
    ticks(NOON + MINUTE)
    broken.refresh_from_db()
    assert (broken.next_fire_at, bool(broken.trouble)) == (None, True)
    assert ledger(whole) == [("12:01", "fired", "")]


def test_crontabs_that_cannot_be_compiled_stop_their_own_schedules_only() -> None:
    broken, whole = schedule(cron="5 * * * *"), schedule(cron="6 * * * *")
    for each, minute in ((broken, "99"), (whole, "7")):
        type(each.task.crontab).objects.filter(pk=each.task.crontab_id).update(minute=minute)
    ticks(NOON + MINUTE)
    ticks(NOON + 7 * MINUTE)
    broken.refresh_from_db()
    assert (broken.stale, broken.next_fire_at, bool(broken.trouble)) == (False, None, True)
    assert (ledger(broken), ledger(whole)) == ([], [("12:07", "fired", "")])
