"""Several people, and the admin, change the same schedules at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django_celery_beat.models import CrontabSchedule, PeriodicTask

from apps.accounts.models import User
from apps.core.actors import Actor
from apps.core.errors import PanelError
from apps.jobs.models import FIRE_TASK, Job, Schedule
from apps.jobs.services import delete_job
from apps.jobs.services.schedules import create_schedule, delete_schedule, recompile, update_schedule
from tests.apps.jobs.schedules.conftest import Make

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(*tasks: Callable[[], Any]) -> list[BaseException]:
    """What went wrong, refusals of ours left out."""
    start, wrong = threading.Barrier(len(tasks)), []

    def run(task: Callable[[], Any]) -> None:
        try:
            start.wait(10)
            task()
        except PanelError:
            pass
        except BaseException as error:  # noqa: BLE001
            wrong.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return wrong


@transaction.atomic
def edited_in_the_admin(pk: int) -> None:
    row = CrontabSchedule.objects.get(pk=pk)
    row.hour = "9"
    row.save()


def in_step(schedule: Schedule, now: datetime) -> Schedule:
    """What is compiled is what the tables of beat say."""
    found = Schedule.objects.get(pk=schedule.pk)
    before = (found.expression, found.timezone, found.enabled, found.every_seconds)
    if not found.stale:
        recompile(schedule=found, now=now)
        assert (found.expression, found.timezone, found.enabled, found.every_seconds) == before
    else:
        recompile(schedule=found, now=now)
    return found


def test_two_people_who_change_different_things_both_get_their_way(make: Make, by: Actor, now: datetime) -> None:
    for turn in range(8):
        made = make(cron="0 3 * * *")
        wrong = at_once(
            partial(update_schedule, schedule=made, by=by, now=now, cron="0 5 * * *"),
            partial(update_schedule, schedule=made, by=by, now=now, timezone="Asia/Tokyo"),
            partial(update_schedule, schedule=made, by=by, now=now, name=f"turn {turn}"),
        )
        assert not wrong
        found = in_step(made, now)
        assert (found.expression, found.timezone, found.name) == ("0 5 * * *", "Asia/Tokyo", f"turn {turn}")


def test_two_people_who_change_the_same_thing_leave_one_of_both(make: Make, by: Actor, now: datetime) -> None:
    made = make()
    changes = [{"cron": f"{minute} 4 * * *"} for minute in range(6)]
    wrong = at_once(*(partial(update_schedule, schedule=made, by=by, now=now, **each) for each in changes))

    assert not wrong
    assert in_step(made, now).expression.endswith(" 4 * * *")
    # Rows that lost are dropped, and none that is used.
    assert CrontabSchedule.objects.count() == 1


def test_a_page_and_the_admin_at_once_end_in_step(make: Make, by: Actor, now: datetime) -> None:
    for _turn in range(8):
        made, other = make(cron="0 3 * * *"), make(cron="0 3 * * *")
        crontab = made.task.crontab_id

        wrong = at_once(
            partial(edited_in_the_admin, crontab),
            partial(update_schedule, schedule=made, by=by, now=now, cron="0 5 * * *"),
            partial(make, cron="0 3 * * *"),
        )
        assert not wrong
        for schedule in Schedule.objects.all():
            in_step(schedule, now)
        assert Schedule.objects.get(pk=other.pk).expression == "0 9 * * *"
        assert Schedule.objects.get(pk=made.pk).expression == "0 5 * * *"
        Schedule.objects.all().delete()


def test_the_admin_switches_a_task_while_a_page_changes_it(make: Make, by: Actor, now: datetime) -> None:
    for _turn in range(8):
        made = make(cron="0 3 * * *")
        wrong = at_once(
            partial(PeriodicTask.objects.filter(pk=made.task_id).update, enabled=False),
            partial(update_schedule, schedule=made, by=by, now=now, name="x"),
        )
        assert not wrong
        found = in_step(made, now)
        assert (found.enabled, found.name, found.next_slot_at) == (False, "x", None)


def test_a_change_under_way_is_not_overlooked_by_the_clock(make: Make, now: datetime) -> None:
    """The row is stale already, and is compiled from what it was, while the next change waits for its lock."""
    made = make(cron="0 3 * * *")
    CrontabSchedule.objects.filter(pk=made.task.crontab_id).update(hour="4")
    waiting = threading.Event()

    def second() -> None:
        waiting.wait(10)
        CrontabSchedule.objects.filter(pk=made.task.crontab_id).update(hour="5")

    def clock() -> None:
        with transaction.atomic():
            held = Schedule.objects.select_for_update(no_key=True).get(pk=made.pk, stale=True)
            waiting.set()
            threading.Event().wait(0.3)
            recompile(schedule=held, now=now)

    assert not at_once(second, clock)

    found = Schedule.objects.get(pk=made.pk)
    assert found.stale
    recompile(schedule=found, now=now)
    assert found.expression == "0 5 * * *"


def test_a_job_deleted_while_it_is_scheduled_leaves_nothing_behind(
    job: Job, make: Make, user: User, by: Actor, now: datetime
) -> None:
    made = make()

    wrong = at_once(
        partial(delete_job, job=Job.objects.get(pk=job.pk), by=user, now=now),
        partial(create_schedule, job=job, by=by, now=now, type="cron", cron="0 6 * * *"),
        partial(create_schedule, job=job, by=by, now=now, type="interval", every=60),
        partial(update_schedule, schedule=made, by=by, now=now, cron="0 7 * * *"),
        partial(delete_schedule, schedule=made, by=by, now=now),
    )

    assert not wrong
    assert not Job.objects.filter(pk=job.pk).exists()
    assert not Schedule.objects.exists()
    assert not PeriodicTask.objects.filter(task=FIRE_TASK).exists()
    assert not CrontabSchedule.objects.exists()
