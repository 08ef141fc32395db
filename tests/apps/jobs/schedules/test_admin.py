"""Three doors to one schedule: the tables of beat in the admin, the pages and the API. They stay in step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.forms import BoundField
from django.test import Client
from django.urls import reverse
from django_celery_beat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask

from apps.accounts.models import User
from apps.accounts.rights import grant
from apps.core.actors import Actor
from apps.jobs.models import FIRE_TASK, Firing, Job, Outcome, Schedule
from apps.jobs.services.firing import look
from apps.jobs.services.schedules import recompile, update_schedule
from apps.runs.models import Run
from tests.apps.jobs.schedules.conftest import Make
from tests.factories import AdminFactory, UserFactory

pytestmark = pytest.mark.django_db


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")
    return client


@pytest.fixture
def admin() -> Client:
    return signed_in(AdminFactory())


def address(model: str, view: str, *args: object) -> str:
    return reverse(f"admin:{model}_{view}", args=args)


def task_page(schedule: Schedule) -> str:
    return address("django_celery_beat_periodictask", "change", schedule.task_id)


def typed_in(client: Client, page: str) -> dict[str, str]:
    """The form of a page as a browser would send it back."""
    answer = client.get(page)
    assert answer.status_code == 200
    boxes = [*answer.context["adminform"].form]
    for inline in answer.context["inline_admin_formsets"]:
        boxes += [*inline.formset.management_form, *(box for form in inline.formset.forms for box in form)]
    return {name: value for box in boxes for name, value in sent_of(box)}


def sent_of(box: BoundField) -> Iterator[tuple[str, str]]:
    value = box.value()
    if hasattr(box.field.widget, "decompress"):
        for number, part in enumerate(box.field.widget.decompress(value)):
            yield f"{box.html_name}_{number}", "" if part is None else str(part)
    elif value is not False:
        yield box.html_name, "on" if value is True else "" if value is None else str(value)


def sent(client: Client, page: str, **changes: Any) -> Any:
    values = {**typed_in(client, page), **changes}
    return client.post(page, {name: value for name, value in values.items() if value is not None})


def saved(answer: Any) -> None:
    errors = "" if answer.status_code == 302 else str(answer.context["errors"])
    assert answer.status_code == 302, re.sub(r"<[^>]+>", " ", errors)


def compiled(schedule: Schedule, now: datetime) -> Schedule:
    found = Schedule.objects.get(pk=schedule.pk)
    assert found.stale
    recompile(schedule=found, now=now)
    return found


# -- the tables of beat -------------------------------------------------------------------------------------------


def test_a_crontab_edited_in_the_admin_moves_the_next_time(admin: Client, make: Make, now: datetime) -> None:
    made = make(cron="0 3 * * *")
    page = address("django_celery_beat_crontabschedule", "change", made.task.crontab_id)

    saved(sent(admin, page, hour="5"))
    assert Schedule.objects.get(pk=made.pk).stale
    look(now=now)

    again = Schedule.objects.get(pk=made.pk)
    assert (again.expression, again.stale) == ("0 5 * * *", False)
    assert again.next_slot_at is not None
    assert (again.next_slot_at.hour, again.next_slot_at > now) == (5, True)


def test_a_shared_crontab_moves_all_of_its_schedules(admin: Client, make: Make, now: datetime) -> None:
    both = [make(cron="0 3 * * *"), make(cron="0 3 * * *")]
    page = address("django_celery_beat_crontabschedule", "change", both[0].task.crontab_id)

    saved(sent(admin, page, hour="5", timezone="Asia/Tokyo"))

    assert [(s.expression, s.timezone) for s in (compiled(each, now) for each in both)] == [
        ("0 5 * * *", "Asia/Tokyo")
    ] * 2


def test_a_task_is_switched_off_and_given_an_end_in_the_admin(admin: Client, make: Make, now: datetime) -> None:
    made = make()
    end = (now + timedelta(days=30)).replace(microsecond=0)

    saved(sent(admin, task_page(made), enabled=None, expires_0=f"{end:%Y-%m-%d}", expires_1=f"{end:%H:%M:%S}"))

    again = compiled(made, now)
    assert (again.enabled, again.end_at, again.next_slot_at) == (False, end, None)


def test_a_task_is_given_another_kind_of_rule_in_the_admin(admin: Client, make: Make, now: datetime) -> None:
    made = make()
    interval = IntervalSchedule.objects.create(every=5, period="minutes")

    saved(sent(admin, task_page(made), crontab="", interval=str(interval.pk)))

    again = compiled(made, now)
    assert (again.type, again.every_seconds) == ("interval", 300)


def test_tasks_are_switched_in_the_list_of_the_admin(admin: Client, make: Make, now: datetime) -> None:
    made = make()
    page = address("django_celery_beat_periodictask", "changelist")

    admin.post(page, {"action": "disable_tasks", "_selected_action": [made.task_id]})
    assert not compiled(made, now).enabled
    admin.post(page, {"action": "toggle_tasks", "_selected_action": [made.task_id]})
    assert compiled(made, now).enabled


@pytest.mark.parametrize("how", ["page", "list"])
def test_a_task_deleted_in_the_admin_takes_its_schedule_along(
    admin: Client, make: Make, how: str, now: datetime
) -> None:
    made, other = make(), make()
    due = Firing.objects.create(job=made.job, schedule=made, scheduled_for=now, outcome=Outcome.MISSED, decided_at=now)
    if how == "page":
        admin.post(address("django_celery_beat_periodictask", "delete", made.task_id), {"post": "yes"})
    else:
        page = address("django_celery_beat_periodictask", "changelist")
        admin.post(page, {"action": "delete_selected", "_selected_action": [made.task_id], "post": "yes"})

    assert [each.pk for each in Schedule.objects.all()] == [other.pk]
    assert list(PeriodicTask.objects.filter(task=FIRE_TASK).values_list("pk", flat=True)) == [other.task_id]
    due.refresh_from_db()
    assert due.schedule is None


def test_a_crontab_deleted_in_the_admin_takes_its_schedules_along(admin: Client, make: Make) -> None:
    made = make(cron="1 1 * * *")
    make(cron="2 2 * * *")
    admin.post(address("django_celery_beat_crontabschedule", "delete", made.task.crontab_id), {"post": "yes"})

    assert Schedule.objects.count() == PeriodicTask.objects.filter(task=FIRE_TASK).count() == 1


def test_a_change_by_service_is_what_the_admin_shows(admin: Client, make: Make, by: Actor, now: datetime) -> None:
    made = make(cron="0 3 * * *")
    update_schedule(schedule=made, by=by, now=now, cron="7 6 * * 1-5", timezone="Europe/Berlin", enabled=False)

    shown = typed_in(admin, task_page(made))
    crontab = CrontabSchedule.objects.get(pk=shown["crontab"])
    assert (crontab.minute, crontab.hour, crontab.day_of_week, str(crontab.timezone)) == (
        "7",
        "6",
        "1-5",
        "Europe/Berlin",
    )
    assert "enabled" not in shown


def test_what_fires_a_schedule_cannot_be_made_to_run_something_else(admin: Client, make: Make) -> None:
    made = make()
    saved(sent(admin, task_page(made), task="runs.sweep", regtask="runs.sweep", kwargs='{"schedule": 1}', queue="x"))

    task = PeriodicTask.objects.get(pk=made.task_id)
    assert (task.task, task.kwargs, task.queue) == (FIRE_TASK, f'{{"schedule": {made.pk}}}', None)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"one_off": "on"}, "one_off"),
        (
            {"start_time_0": "2031-01-02", "start_time_1": "00:00", "expires_0": "2031-01-01", "expires_1": "00:00"},
            "expires",
        ),
    ],
    ids=["one off", "end before start"],
)
def test_what_could_not_be_kept_is_refused_at_its_field(
    admin: Client, make: Make, changes: dict[str, str], field: str
) -> None:
    made = make()
    answer = sent(admin, task_page(made), **changes)

    assert list(answer.context["adminform"].form.errors) == [field]
    assert not Schedule.objects.get(pk=made.pk).stale


def test_a_task_cannot_be_given_a_time_that_has_passed(admin: Client, make: Make, now: datetime) -> None:
    made = make()
    past = ClockedSchedule.objects.create(clocked_time=now - timedelta(days=1))

    answer = sent(admin, task_page(made), crontab="", clocked=str(past.pk), one_off="on")

    assert "clocked" in answer.context["adminform"].form.errors


def test_a_rule_that_never_comes_is_refused_where_a_schedule_uses_it(admin: Client, make: Make) -> None:
    used = make().task.crontab_id
    free = CrontabSchedule.objects.create(hour="9").pk

    answers = [
        sent(admin, address("django_celery_beat_crontabschedule", "change", pk), day_of_month="31", month_of_year="2")
        for pk in (used, free)
    ]

    assert [answer.status_code for answer in answers] == [200, 302]


def test_schedules_are_not_made_as_bare_tasks(admin: Client) -> None:
    page = address("django_celery_beat_periodictask", "add")
    answer = sent(
        admin, page, name="x", task=FIRE_TASK, interval=str(IntervalSchedule.objects.create(every=1, period="days").pk)
    )

    assert list(answer.context["adminform"].form.errors) == ["task"]


def test_ordinary_tasks_are_made_and_changed_as_before(admin: Client) -> None:
    interval = IntervalSchedule.objects.create(every=1, period="days")
    page = address("django_celery_beat_periodictask", "add")
    saved(sent(admin, page, name="x", regtask="runs.sweep", interval=str(interval.pk), kwargs='{"a": 1}'))

    task = PeriodicTask.objects.get(name="x")
    saved(sent(admin, address("django_celery_beat_periodictask", "change", task.pk), kwargs='{"a": 2}', one_off="on"))
    task.refresh_from_db()
    assert (task.task, task.kwargs, task.one_off) == ("runs.sweep", '{"a": 2}', True)


def test_run_selected_tasks_runs_the_job_with_the_parameters_of_the_schedule(admin: Client, make: Make) -> None:
    made = make(parameters={"pages": 8})
    page = address("django_celery_beat_periodictask", "changelist")

    admin.post(page, {"action": "run_tasks", "_selected_action": [made.task_id]})

    run = Run.objects.get(job=made.job)
    assert (run.spec["parameters"]["pages"], run.schedule, run.trigger) == (8, None, "manual")


# -- our own tables -----------------------------------------------------------------------------------------------


def test_jobs_deleted_in_the_admin_leave_no_rows_of_beat(admin: Client, make: Make, now: datetime) -> None:
    made = make()
    Firing.objects.create(job=made.job, schedule=made, scheduled_for=now, outcome=Outcome.FIRED, decided_at=now)
    page = address("jobs_job", "changelist")

    admin.post(page, {"action": "delete_selected", "_selected_action": [made.job_id], "post": "yes"})

    assert not Job.objects.exists()
    assert not Schedule.objects.exists()
    assert not PeriodicTask.objects.filter(task=FIRE_TASK).exists()


def test_who_may_edit_a_job_may_delete_it_with_its_schedules_in_the_admin(make: Make, now: datetime) -> None:
    made, user = make(), UserFactory(is_staff=True)
    Firing.objects.create(job=made.job, schedule=made, scheduled_for=now, outcome=Outcome.FIRED, decided_at=now)
    grant(user, "view", made.job)
    grant(user, "edit", made.job)

    signed_in(user).post(address("jobs_job", "delete", made.job_id), {"post": "yes"})

    assert not Job.objects.exists()


def test_schedules_are_switched_and_deleted_in_their_own_list(admin: Client, make: Make) -> None:
    made, page = make(), address("jobs_schedule", "changelist")
    admin.post(page, {"action": "disable", "_selected_action": [made.pk]})
    assert not PeriodicTask.objects.get(pk=made.task_id).enabled
    admin.post(page, {"action": "enable", "_selected_action": [made.pk]})
    assert PeriodicTask.objects.get(pk=made.task_id).enabled

    admin.post(page, {"action": "delete_selected", "_selected_action": [made.pk], "post": "yes"})
    assert not PeriodicTask.objects.filter(pk=made.task_id).exists()


def test_lists_hold_only_what_a_person_may_see_and_actions_ask_for_rights(make: Make, now: datetime) -> None:
    made, user, stranger = make(name="nightly"), UserFactory(is_staff=True), UserFactory(is_staff=True)
    grant(user, "view", made.job)
    page = address("jobs_schedule", "changelist")

    assert "nightly" not in signed_in(stranger).get(page).content.decode()
    client = signed_in(user)
    assert "nightly" in client.get(page).content.decode()
    client.post(page, {"action": "disable", "_selected_action": [made.pk]})
    client.post(page, {"action": "delete_selected", "_selected_action": [made.pk], "post": "yes"})
    assert Schedule.objects.get(pk=made.pk).enabled
    assert client.get(address("django_celery_beat_periodictask", "changelist")).status_code == 403


def test_pages_of_the_admin_open_with_something_in_them(admin: Client, make: Make, now: datetime) -> None:
    made = make(name="nightly", parameters={"pages": 2})
    due = Firing.objects.create(
        job=made.job, schedule=made, scheduled_for=now, outcome=Outcome.SKIPPED, reason="paused", decided_at=now
    )
    for page in (
        address("jobs_schedule", "changelist"),
        address("jobs_schedule", "change", made.pk),
        address("jobs_firing", "changelist"),
        address("jobs_firing", "change", due.pk),
        address("jobs_clock", "changelist"),
        address("django_celery_beat_periodictask", "changelist"),
        address("django_celery_beat_crontabschedule", "changelist") + "?q=3",
        address("django_celery_beat_clockedschedule", "changelist") + "?q=2031",
        address("django_celery_beat_intervalschedule", "changelist") + "?q=1",
        reverse("admin:autocomplete")
        + "?app_label=django_celery_beat&model_name=periodictask&field_name=crontab&term=3",
    ):
        assert admin.get(page).status_code == 200, page
