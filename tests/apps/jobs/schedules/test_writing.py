"""Making, changing and deleting schedules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask

from apps.accounts.models import User
from apps.core.actors import Actor, person
from apps.core.errors import Invalid, NotFound
from apps.jobs.models import FIRE_TASK, Job, Schedule
from apps.jobs.selectors import slot_after
from apps.jobs.services import delete_job, update_job
from apps.jobs.services.schedules import create_schedule, delete_schedule, set_enabled, update_schedule
from apps.jobs.services.schedules.writing import ScheduleChanged
from tests.apps.jobs.schedules.conftest import Make
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db

NOON = datetime(2031, 5, 6, 12, 0, 30, tzinfo=UTC)


def faults_of(refusal: pytest.ExceptionInfo[Invalid]) -> dict[str, list[str]]:
    return refusal.value.fields


# -- making -------------------------------------------------------------------------------------------------------


def test_a_cron_schedule_is_aimed_at_its_next_time(make: Make) -> None:
    made = make(now=NOON, cron="0 3 * * *", timezone="Europe/Berlin")

    assert made.next_slot_at == made.next_fire_at == datetime(2031, 5, 7, 1, tzinfo=UTC)
    assert not made.stale
    assert not made.trouble


def test_what_was_typed_is_kept_beside_what_it_stands_for(make: Make) -> None:
    made = make(cron="  @daily ")

    assert (made.typed, made.expression) == ("@daily", "0 0 * * *")


def test_schedules_that_spread_take_different_minutes_and_keep_them(make: Make, by: Actor, now: datetime) -> None:
    first, second = make(cron="~ 3 * * *"), make(cron="~ 3 * * *")
    assert first.expression != second.expression

    again = update_schedule(schedule=first, by=by, now=now, cron="~ 4 * * *")
    assert again.expression.split()[0] == first.expression.split()[0]


def test_an_interval_is_counted_from_when_it_was_made(make: Make) -> None:
    made = make(now=NOON, type="interval", every="90 s")

    assert made.anchor_at == NOON
    assert made.next_slot_at == NOON + timedelta(seconds=90)


def test_an_interval_with_a_first_day_is_counted_from_there(make: Make) -> None:
    start = NOON + timedelta(hours=5)
    made = make(now=NOON, type="interval", every=3600, start_at=start)

    assert made.next_slot_at == start


def test_an_interval_is_counted_from_what_is_said(make: Make) -> None:
    made = make(now=NOON, type="interval", every=3600, anchor_at=datetime(2031, 1, 1, 0, 17, tzinfo=UTC))

    assert made.next_slot_at == datetime(2031, 5, 6, 12, 17, tzinfo=UTC)


def test_a_date_is_for_one_time(make: Make) -> None:
    made = make(now=NOON, type="once", at=NOON + timedelta(days=1))

    assert made.next_slot_at == NOON + timedelta(days=1)


def test_the_first_and_the_last_time_are_included(make: Make) -> None:
    three = datetime(2031, 5, 10, 3, tzinfo=UTC)
    made = make(now=NOON, start_at=three, end_at=three + timedelta(days=1))

    assert made.next_slot_at == three
    assert slot_after(made, three) == made.end_at
    assert slot_after(made, three + timedelta(days=1)) is None


def test_jitter_moves_the_start_and_not_the_time_itself(make: Make) -> None:
    made = make(now=NOON, jitter="10 min")

    assert made.next_slot_at == datetime(2031, 5, 7, 3, tzinfo=UTC)
    assert made.next_fire_at is not None
    assert timedelta(0) <= made.next_fire_at - made.next_slot_at <= timedelta(minutes=10)


def test_one_that_is_switched_off_has_no_next_time(make: Make) -> None:
    made = make(enabled=False)

    assert made.next_slot_at is made.next_fire_at is None


def test_parameters_are_laid_over_those_of_the_job(make: Make) -> None:
    assert make(parameters={"pages": 9}).parameters == {"pages": 9}


def test_parameters_may_hold_templates(make: Make) -> None:
    given = {"site": "{{ yesterday }}", "pages": '{{ scheduled_for | date:"%d" }}'}

    assert make(parameters=given).parameters == given


def test_all_is_noted_in_the_log_of_changes(make: Make, by: Actor, now: datetime, user: User) -> None:
    made = make()
    update_schedule(schedule=made, by=by, now=now, cron="5 5 * * *")
    set_enabled(schedule=made, by=by, now=now, enabled=False)
    delete_schedule(schedule=made, by=by, now=now)

    noted = LogEntry.objects.filter(user=user, object_id=str(made.pk)).order_by("pk")
    assert [entry.change_message for entry in noted] == ["created", "changed: cron", "disabled", "deleted"]


# -- the rows of django-celery-beat -------------------------------------------------------------------------------


def test_a_cron_schedule_stands_in_the_tables_of_beat(make: Make) -> None:
    end = NOON + timedelta(days=30)
    task = make(now=NOON, cron="5 3 * * 1-5", timezone="Asia/Shanghai", start_at=NOON, end_at=end).task
    task.refresh_from_db()

    crontab = task.crontab
    assert (crontab.minute, crontab.hour, crontab.day_of_week, str(crontab.timezone)) == (
        "5", "3", "1-5", "Asia/Shanghai",
    )  # fmt: skip
    assert (task.task, task.enabled, task.start_time, task.expires) == (
        FIRE_TASK,
        True,
        NOON.replace(microsecond=0),
        end,
    )
    assert task.kwargs == f'{{"schedule": {Schedule.objects.get().pk}}}'
    assert not task.one_off
    task.validate_unique()


@pytest.mark.parametrize(
    ("every", "row"), [(90, (90, "seconds")), (120, (2, "minutes")), ("3 h", (3, "hours")), (86400, (1, "days"))]
)
def test_an_interval_stands_there_in_its_largest_unit(make: Make, every: Any, row: tuple[int, str]) -> None:
    interval = make(type="interval", every=every).task.interval

    assert (interval.every, interval.period) == row


def test_a_date_stands_there_as_a_one_off(make: Make) -> None:
    task = make(now=NOON, type="once", at=NOON + timedelta(days=1)).task
    task.refresh_from_db()

    assert task.clocked.clocked_time == NOON + timedelta(days=1)
    task.validate_unique()


def test_tasks_are_called_by_their_job_also_after_it_was_renamed(
    make: Make, job: Job, user: User, now: datetime
) -> None:
    made = make()
    assert made.task.name == f"{job.name} (schedule {made.pk})"

    update_job(job=job, by=user, now=now, name="nightly crawl")

    assert PeriodicTask.objects.get(pk=made.task_id).name == f"nightly crawl (schedule {made.pk})"
    assert not Schedule.objects.get(pk=made.pk).stale


def test_equal_rules_share_a_row_until_one_is_changed(make: Make, by: Actor, now: datetime) -> None:
    first, second = make(cron="0 3 * * *"), make(cron="0 3 * * *")
    assert first.task.crontab_id == second.task.crontab_id

    update_schedule(schedule=first, by=by, now=now, cron="0 4 * * *")

    assert PeriodicTask.objects.get(pk=second.task_id).crontab.hour == "3"
    second.refresh_from_db()
    assert not second.stale


def test_rows_that_nobody_uses_any_more_are_gone(make: Make, by: Actor, now: datetime) -> None:
    made = make(cron="7 7 7 7 *")
    update_schedule(schedule=made, by=by, now=now, type="interval", every=60)
    assert not CrontabSchedule.objects.filter(minute="7").exists()

    delete_schedule(schedule=made, by=by, now=now)
    assert not IntervalSchedule.objects.filter(every=1, period="minutes").exists()
    assert not PeriodicTask.objects.filter(task=FIRE_TASK).exists()


def test_rows_that_others_use_too_stay(make: Make, by: Actor, now: datetime) -> None:
    made = make(cron="7 7 7 7 *")
    PeriodicTask.objects.create(name="other", task="runs.sweep", crontab=made.task.crontab)

    delete_schedule(schedule=made, by=by, now=now)

    assert CrontabSchedule.objects.filter(minute="7").exists()
    assert PeriodicTask.objects.filter(name="other").exists()


# -- refusals -----------------------------------------------------------------------------------------------------

BAD: list[tuple[dict[str, Any], str]] = [
    ({"cron": ""}, "cron"),
    ({"cron": "* * * *"}, "cron"),
    ({"cron": "* * * * * *"}, "cron"),
    ({"cron": "61 * * * *"}, "cron"),
    ({"cron": "0 0 31 2 *"}, "cron"),
    ({"cron": "0 0 30 2 *"}, "cron"),
    ({"cron": "*/0 * * * *"}, "cron"),
    ({"cron": "0 3 * * *" * 100}, "cron"),
    ({"cron": "0 3 * * \0"}, "cron"),
    ({"cron": "@reboot"}, "cron"),
    ({"type": "hourly"}, "type"),
    ({"type": ""}, "type"),
    ({"timezone": "Mars/Olympus"}, "timezone"),
    ({"timezone": ""}, "timezone"),
    ({"timezone": "../../etc/passwd"}, "timezone"),
    ({"timezone": None}, "timezone"),
    ({"type": "interval", "every": 0}, "every"),
    ({"type": "interval", "every": -5}, "every"),
    ({"type": "interval", "every": None}, "every"),
    ({"type": "interval", "every": "soon"}, "every"),
    ({"type": "interval", "every": 10**12}, "every"),
    ({"type": "interval", "every": 1.5}, "every"),
    ({"type": "interval", "every": 60, "jitter": 61}, "jitter"),
    ({"type": "interval", "every": 60, "jitter": -1}, "jitter"),
    ({"type": "interval", "every": 60, "anchor_at": datetime(2031, 1, 1)}, "anchor_at"),  # noqa: DTZ001
    ({"cron": "*/5 * * * *", "jitter": "5 min 1 s"}, "jitter"),
    ({"cron": "0,1 3 * * *", "jitter": 61}, "jitter"),
    ({"jitter": 10**9}, "jitter"),
    ({"type": "once"}, "at"),
    ({"type": "once", "at": NOON}, "at"),
    ({"type": "once", "at": NOON - timedelta(days=1)}, "at"),
    ({"type": "once", "at": datetime(9999, 12, 31, tzinfo=UTC)}, "at"),
    ({"type": "once", "at": NOON + timedelta(days=2), "end_at": NOON + timedelta(days=1)}, "at"),
    ({"type": "once", "at": NOON + timedelta(days=2), "cron": "0 3 * * *"}, "cron"),
    ({"every": 60}, "every"),
    ({"start_at": NOON + timedelta(days=2), "end_at": NOON + timedelta(days=1)}, "end_at"),
    ({"end_at": NOON - timedelta(days=1)}, "end_at"),
    ({"end_at": NOON + timedelta(minutes=1)}, "cron"),
    ({"start_at": datetime(2031, 6, 1)}, "start_at"),  # noqa: DTZ001
    ({"misfire": {"policy": "never"}}, "misfire.policy"),
    ({"misfire": {"grace": -1}}, "misfire.grace"),
    ({"misfire": {"grace": "31 d"}}, "misfire.grace"),
    ({"misfire": {"cap": 0}}, "misfire.cap"),
    ({"misfire": {"cap": 1001}}, "misfire.cap"),
    ({"misfire": {"cap": "10"}}, "misfire.cap"),
    ({"misfire": {"spacing": "2 d"}}, "misfire.spacing"),
    ({"misfire": {"often": 1}}, "misfire.often"),
    ({"misfire": "once"}, "misfire"),
    ({"enabled": "yes"}, "enabled"),
    ({"name": "x" * 101}, "name"),
    ({"name": "a\nb"}, "name"),
    ({"name": None}, "name"),
    ({"parameters": {"pages": 0}}, "parameters.pages"),
    ({"parameters": {"pages": "many"}}, "parameters.pages"),
    ({"parameters": {"colour": "red"}}, "parameters.colour"),
    ({"parameters": {"token": "secret"}}, "parameters.token"),
    ({"parameters": ["pages"]}, "parameters"),
    ({"parameters": {"site": "{{ tomorow }}"}}, "parameters.site"),
    ({"parameters": {"site": "{{ ''.__class__ }}"}}, "parameters.site"),
    ({"parameters": {"site": "{% for x in y %}"}}, "parameters.site"),
    ({"parameters": {"site": "{{ today "}}, "parameters.site"),
    ({"parameters": {"site": "{{ upstream.nobody.x }}"}}, "parameters.site"),
    ({"parameters": {"pages": "{{ today }}"}}, "parameters.pages"),
]


@pytest.mark.parametrize(("values", "field"), BAD, ids=str)
def test_bad_input_is_refused_at_its_field(make: Make, values: dict[str, Any], field: str) -> None:
    wrong = {"cron": ""} if values.get("type") in ("interval", "once") else {}
    with pytest.raises(Invalid) as refusal:
        make(**{"now": NOON, **wrong, **values})

    assert set(faults_of(refusal)) == {field}
    assert not Schedule.objects.exists()
    assert not PeriodicTask.objects.filter(task=FIRE_TASK).exists()


def test_all_faults_are_told_at_once(make: Make) -> None:
    with pytest.raises(Invalid) as refusal:
        make(cron="x", timezone="Nowhere", misfire={"cap": 0}, jitter="x", parameters={"pages": 0}, name="\0")

    assert set(faults_of(refusal)) == {"cron", "timezone", "misfire.cap", "jitter", "parameters.pages", "name"}


# -- changing -----------------------------------------------------------------------------------------------------


def test_a_change_is_reckoned_from_now_and_never_fires_the_past(make: Make, by: Actor) -> None:
    made = make(now=NOON, cron="0 * * * *")

    later = NOON + timedelta(days=3)
    changed = update_schedule(schedule=made, by=by, now=later, cron="30 * * * *")

    assert changed.next_slot_at == datetime(2031, 5, 9, 12, 30, tzinfo=UTC)


def test_what_is_not_named_stays(make: Make, by: Actor, now: datetime) -> None:
    made = make(misfire={"policy": "all", "cap": 7}, timezone="Asia/Tokyo", jitter=5, parameters={"pages": 2}, name="n")

    changed = update_schedule(schedule=made, by=by, now=now, misfire={"grace": 30})
    changed.refresh_from_db()

    assert (changed.misfire, changed.misfire_cap, changed.misfire_grace_seconds) == ("all", 7, 30)
    assert (changed.timezone, changed.jitter_seconds, changed.parameters, changed.name) == (
        "Asia/Tokyo", 5, {"pages": 2}, "n",
    )  # fmt: skip
    assert changed.next_slot_at == made.next_slot_at


def test_a_change_of_something_else_does_not_move_a_time_that_is_due(make: Make, by: Actor) -> None:
    made = make(now=NOON, cron="0 * * * *")
    due = made.next_slot_at
    assert due is not None

    changed = update_schedule(schedule=made, by=by, now=due + timedelta(seconds=2), parameters={"pages": 4})

    assert changed.next_slot_at == due


def test_switched_off_and_on_again_it_goes_on_from_then(make: Make, by: Actor) -> None:
    made = make(now=NOON, cron="0 * * * *")
    off = set_enabled(schedule=made, by=by, now=NOON, enabled=False)
    assert off.next_slot_at is None
    assert not PeriodicTask.objects.get(pk=made.task_id).enabled

    on = set_enabled(schedule=made, by=by, now=NOON + timedelta(hours=5), enabled=True)

    assert on.next_slot_at == datetime(2031, 5, 6, 18, tzinfo=UTC)
    assert PeriodicTask.objects.get(pk=made.task_id).enabled


def test_a_new_jitter_moves_the_start_of_the_same_time(make: Make, by: Actor) -> None:
    made = make(now=NOON)
    changed = update_schedule(schedule=made, by=by, now=NOON, jitter=3600)

    assert changed.next_slot_at == made.next_slot_at
    assert changed.next_fire_at != changed.next_slot_at


def test_another_type_forgets_what_the_old_one_had(make: Make, by: Actor, now: datetime) -> None:
    made = make(cron="@daily")
    changed = update_schedule(schedule=made, by=by, now=now, type="interval", every=60)

    assert (changed.expression, changed.typed, changed.every_seconds) == ("", "", 60)
    task = PeriodicTask.objects.get(pk=made.task_id)
    assert task.crontab is None
    assert task.interval is not None


@pytest.mark.parametrize("nothing", [None, ""])
def test_a_rule_cannot_be_taken_away(make: Make, by: Actor, now: datetime, nothing: Any) -> None:
    with pytest.raises(Invalid) as refusal:
        update_schedule(schedule=make(), by=by, now=now, cron=nothing)

    assert set(faults_of(refusal)) == {"cron"}


def test_the_log_of_changes_names_what_is_other_than_before(make: Make, by: Actor, now: datetime) -> None:
    made = make()
    said = {"type": "cron", "cron": "0 3 * * *", "timezone": "UTC", "parameters": {"pages": 5}, "enabled": False}
    update_schedule(schedule=made, by=by, now=now, **said, misfire={"policy": "once", "cap": 3}, name="nightly")

    noted = LogEntry.objects.order_by("pk").values_list("change_message", flat=True)
    assert [*noted][1:] == ["disabled", "changed: misfire, name, parameters"]


def test_the_name_stands_in_the_tables_of_beat_too(make: Make, by: Actor, now: datetime) -> None:
    made = make()
    update_schedule(schedule=made, by=by, now=now, name="nightly")

    assert PeriodicTask.objects.get(pk=made.task_id).description == "nightly"


def test_a_date_that_has_passed_does_not_stand_in_the_way_of_other_changes(make: Make, by: Actor) -> None:
    made = make(now=NOON, type="once", at=NOON + timedelta(hours=1))

    changed = update_schedule(schedule=made, by=by, now=NOON + timedelta(days=1), name="then")

    assert changed.name == "then"


def test_an_end_can_be_taken_away(make: Make, by: Actor) -> None:
    made = make(now=NOON, end_at=NOON + timedelta(days=5))

    assert update_schedule(schedule=made, by=by, now=NOON, end_at=None).end_at is None
    assert PeriodicTask.objects.get(pk=made.task_id).expires is None


def test_a_change_of_nothing_changes_nothing(make: Make, by: Actor, now: datetime) -> None:
    made = make(cron="0 3 * * *")
    same = update_schedule(schedule=made, by=by, now=now + timedelta(hours=1), cron="0 3 * * *", timezone="UTC")

    assert same.updated_at == made.updated_at
    assert not LogEntry.objects.filter(change_message__startswith="changed").exists()


def test_who_has_seen_an_older_state_is_told_so(make: Make, by: Actor, now: datetime) -> None:
    made = make()
    seen = made.updated_at
    update_schedule(schedule=made, by=by, now=now + timedelta(minutes=1), name="first")

    with pytest.raises(ScheduleChanged):
        update_schedule(schedule=made, by=by, now=now + timedelta(minutes=2), seen=seen, name="second")

    made.refresh_from_db()
    assert made.name == "first"


def test_a_change_of_a_deleted_one_is_refused(make: Make, by: Actor, now: datetime) -> None:
    made = make()
    delete_schedule(schedule=Schedule.objects.get(pk=made.pk), by=by, now=now)

    with pytest.raises(NotFound):
        update_schedule(schedule=made, by=by, now=now, name="x")


def test_an_unknown_field_is_a_mistake_of_the_caller(make: Make, by: Actor, now: datetime) -> None:
    with pytest.raises(TypeError, match="colour"):
        update_schedule(schedule=make(), by=by, now=now, colour="red")


# -- deleting -----------------------------------------------------------------------------------------------------


def test_with_a_job_its_schedules_and_their_rows_are_gone(make: Make, job: Job, user: User, now: datetime) -> None:
    make(), make(type="interval", every=60), make(type="once", at=now + timedelta(days=1))

    delete_job(job=job, by=user, now=now)

    assert not Schedule.objects.exists()
    assert not PeriodicTask.objects.filter(task=FIRE_TASK).exists()
    assert not CrontabSchedule.objects.filter(hour="3").exists()


def test_a_schedule_that_is_gone_by_any_way_takes_its_task_along(make: Make) -> None:
    made = make()
    Schedule.objects.filter(pk=made.pk).delete()

    assert not PeriodicTask.objects.filter(pk=made.task_id).exists()


def test_schedules_of_a_deleted_job_are_not_made(job: Job, now: datetime) -> None:
    user = UserFactory()
    delete_job(job=Job.objects.get(pk=job.pk), by=user, now=now)

    with pytest.raises(NotFound):
        create_schedule(job=job, by=person(user), now=now, type="cron", cron="0 3 * * *")
