"""Pages of schedules: the form, the job's section, the list, the ledger and the calendar."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import User
from apps.accounts.rights import grant
from apps.core.actors import SYSTEM, person
from apps.jobs.models import Clock, Firing, Job, Outcome, Schedule
from apps.jobs.selectors.due import is_paused
from apps.jobs.services import schedules
from apps.runs.models import Run
from apps.runs.states import State
from tests.factories import AdminFactory, JobFactory, RunFactory, SpiderFactory, UserFactory

pytestmark = pytest.mark.django_db

BACKEND = "allauth.account.auth_backends.AuthenticationBackend"
LIMITS = {"memory_mb": "256", "cpus": "0.5", "timeout_seconds": "60", "grace_seconds": "5", "priority": "3", "env": ""}
SCHEMA = {"type": "object", "properties": {"pages": {"type": "integer", "minimum": 1, "default": 3}}}
WHEN = {
    "when-kind": "daily",
    "when-time": "09:30",
    "when-timezone": "Asia/Shanghai",
    "when-jitter": "0s",
    "when-misfire": "once",
    "when-misfire_grace": "10m",
    "when-misfire_cap": "10",
    "when-misfire_spacing": "0s",
}


@pytest.fixture
def client_of(db: None) -> Callable[[User], Client]:
    def client_of(user: User) -> Client:
        client = Client()
        client.force_login(user, backend=BACKEND)
        return client

    return client_of


@pytest.fixture
def page(client_of: Callable[[User], Client]) -> Client:
    return client_of(AdminFactory(username="ada"))


@pytest.fixture
def job(db: None) -> Job:
    made: Job = JobFactory(spider=SpiderFactory(name="weather", version__parameter_schema=SCHEMA), name="Weather")
    return made


@pytest.fixture
def schedule(job: Job, now: datetime) -> Schedule:
    return schedules.create_schedule(
        job=job, by=SYSTEM, now=now, type="cron", cron="0 6 * * 1-5", timezone="Europe/Berlin", name="Early"
    )


def form(**more: Any) -> dict[str, Any]:
    return {"spider": "weather", "name": "Rain", "p.pages": "2", **LIMITS, **more}


def due(schedule: Schedule, at: datetime, outcome: str = Outcome.FIRED, reason: str = "", **more: Any) -> Firing:
    more.setdefault("decided_at", at)
    made: Firing = Firing.objects.create(
        job=schedule.job, schedule=schedule, scheduled_for=at, outcome=outcome, reason=reason, **more
    )
    return made


# -- the form of a job --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("boxes", "stored"),
    [
        ({}, ("cron", "30 9 * * *", None)),
        ({"when-kind": "hourly", "when-minute": "5"}, ("cron", "5 * * * *", None)),
        ({"when-kind": "workdays"}, ("cron", "30 9 * * 1-5", None)),
        ({"when-kind": "weekly", "when-weekdays": ["1", "0"]}, ("cron", "30 9 * * 1,0", None)),
        ({"when-kind": "monthly", "when-monthday": "31"}, ("cron", "30 9 31 * *", None)),
        ({"when-kind": "cron", "when-cron": "@daily"}, ("cron", "@daily", None)),
        ({"when-kind": "interval", "when-every": "15 min"}, ("interval", "", 900)),
    ],
)
def test_a_job_and_its_schedule_are_made_together(
    page: Client, job: Job, boxes: dict[str, Any], stored: tuple[str, str, int | None]
) -> None:
    answer = page.post("/jobs/new/", form(**{**WHEN, **boxes}))
    assert answer.status_code == 302, answer.content.decode()
    schedule = Schedule.objects.get(job__name="Rain")
    assert (schedule.type, schedule.typed, schedule.every_seconds) == stored
    assert schedule.timezone == "Asia/Shanghai"
    assert schedule.next_fire_at


def test_boxes_show_again_what_was_stored(page: Client, job: Job) -> None:
    boxes = {**WHEN, "when-kind": "weekly", "when-weekdays": ["1", "0"], "when-time": "23:05"}
    page.post("/jobs/new/", form(**boxes))
    schedule = Schedule.objects.get()
    shown = page.get(f"/schedules/{schedule.pk}/edit/").context["form"]
    assert shown.chosen == "weekly"
    assert shown["time"].value().strftime("%H:%M") == "23:05"
    assert sorted(shown["weekdays"].value()) == ["0", "1"]


def test_a_time_once_is_meant_in_its_zone(page: Client, job: Job, now: datetime) -> None:
    year = now.year + 1
    page.post("/jobs/new/", form(**{**WHEN, "when-kind": "once", "when-once_at": f"{year}-07-01T08:00"}))
    assert Schedule.objects.get().once_at == datetime(year, 7, 1, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("boxes", "box"),
    [
        ({"when-kind": "cron", "when-cron": "* * * *"}, "cron"),
        ({"when-kind": "cron", "when-cron": "0 0 31 2 *"}, "cron"),
        ({"when-kind": "cron", "when-cron": ""}, "cron"),
        ({"when-kind": "interval", "when-every": "0"}, "every"),
        ({"when-kind": "interval", "when-every": "-5"}, "every"),
        ({"when-kind": "weekly"}, "weekdays"),
        ({"when-kind": "hourly", "when-minute": "60"}, "minute"),
        ({"when-kind": "daily", "when-time": "25:00"}, "time"),
        ({"when-kind": "once", "when-once_at": "2027-03-28T02:30", "when-timezone": "Europe/Berlin"}, "once_at"),
        ({"when-kind": "once", "when-once_at": "2001-01-01T00:00"}, "once_at"),
        ({"when-timezone": "Mars/Olympus"}, "timezone"),
        ({"when-start_at": "2030-01-02T00:00", "when-end_at": "2030-01-01T00:00"}, "end_at"),
        ({"when-kind": "interval", "when-every": "1 min", "when-jitter": "5 min"}, "jitter"),
        ({"when-parameters": "[1]"}, "parameters"),
        ({"when-parameters": '{"pages": 0}'}, "parameters"),
        ({"when-parameters": '{"pages": }'}, "parameters"),
    ],
)
def test_what_is_wrong_is_told_at_its_box_and_nothing_is_saved(
    page: Client, job: Job, boxes: dict[str, Any], box: str
) -> None:
    answer = page.post("/jobs/new/", form(**{**WHEN, **boxes}))
    assert answer.status_code == 422
    assert list(answer.context["page"].when.errors) == [box]
    assert f'href="#id_when-{box}"' in answer.content.decode()
    assert not Job.objects.filter(name="Rain").exists()
    assert not Schedule.objects.exists()


def test_boxes_of_other_choices_may_hold_anything(page: Client, job: Job) -> None:
    answer = page.post("/jobs/new/", form(**{**WHEN, "when-cron": "nonsense", "when-minute": "99", "when-every": "x"}))
    assert answer.status_code == 302
    assert Schedule.objects.get().typed == "30 9 * * *"


def test_only_by_hand_makes_no_schedule_and_takes_one_away(page: Client, job: Job, schedule: Schedule) -> None:
    by_hand = {**WHEN, "when-kind": "hand", "when-timezone": "nowhere"}
    page.post("/jobs/new/", form(**by_hand))
    assert Job.objects.filter(name="Rain").exists()
    assert Schedule.objects.get() == schedule
    page.post(f"/jobs/{job.pk}/edit/", form(**{**by_hand, "name": "By hand"}))
    assert not Schedule.objects.exists()


def test_saving_a_job_leaves_its_schedule_as_it_is(page: Client, job: Job, schedule: Schedule) -> None:
    values = page.get(f"/jobs/{job.pk}/edit/").context["page"].when
    assert values.chosen == "workdays"
    same = {**WHEN, "when-kind": "workdays", "when-time": "06:00", "when-timezone": "Europe/Berlin"}
    page.post(f"/jobs/{job.pk}/edit/", form(name="Renamed", **same, **{"when-name": "Early"}))
    job.refresh_from_db()
    before, after = schedule, Schedule.objects.get()
    assert job.name == "Renamed"
    assert (after.updated_at, after.next_fire_at) == (before.updated_at, before.next_fire_at)


def test_what_somebody_else_has_changed_meanwhile_is_not_overwritten(
    page: Client, job: Job, schedule: Schedule, now: datetime
) -> None:
    seen = schedule.updated_at.isoformat()
    schedules.update_schedule(schedule=schedule, by=SYSTEM, now=now + timedelta(seconds=9), cron="0 7 * * *")
    answer = page.post(f"/schedules/{schedule.pk}/edit/", {**WHEN, "when-seen": seen})
    assert answer.status_code == 422
    assert "meanwhile" in answer.content.decode()
    assert Schedule.objects.get().expression == "0 7 * * *"


def test_a_form_that_was_opened_before_the_schedule_was_deleted_does_not_bring_it_back(
    page: Client, job: Job, schedule: Schedule, now: datetime
) -> None:
    seen = schedule.updated_at.isoformat()
    schedules.delete_schedule(schedule=schedule, by=SYSTEM, now=now)
    answer = page.post(f"/jobs/{job.pk}/edit/", form(**WHEN, **{"when-seen": seen}))
    assert answer.status_code == 422
    assert "meanwhile" in answer.content.decode()
    assert Job.objects.get(pk=job.pk).name == "Weather"
    assert not Schedule.objects.exists()


def test_a_form_that_was_opened_before_there_were_several_schedules_says_what_it_did_not_save(
    page: Client, job: Job, schedule: Schedule, now: datetime
) -> None:
    schedules.create_schedule(job=job, by=SYSTEM, now=now, type="interval", every=600)
    answer = page.post(f"/jobs/{job.pk}/edit/", form(**WHEN), follow=True)
    assert "each schedule has a page of its own now" in answer.content.decode()
    assert Job.objects.get(pk=job.pk).name == "Rain"
    assert Schedule.objects.get(pk=schedule.pk).expression == "0 6 * * 1-5"


def test_a_job_with_several_schedules_leads_to_the_page_of_each(
    page: Client, job: Job, schedule: Schedule, now: datetime
) -> None:
    other = schedules.create_schedule(job=job, by=SYSTEM, now=now, type="interval", every=600)
    text = page.get(f"/jobs/{job.pk}/edit/").content.decode()
    assert "when-kind" not in text
    for each in (schedule, other):
        assert f"/schedules/{each.pk}/edit/" in text


def test_who_may_edit_but_not_schedule_cannot_say_when(
    client_of: Callable[[User], Client], job: Job, schedule: Schedule
) -> None:
    user = UserFactory()
    grant(user, "view", job.project)
    grant(user, "edit", job.project)
    client = client_of(user)
    assert "when-kind" not in client.get(f"/jobs/{job.pk}/edit/").content.decode()
    client.post(f"/jobs/{job.pk}/edit/", form(name="Mine", **{**WHEN, "when-kind": "hand"}))
    assert Job.objects.get(pk=job.pk).name == "Mine"
    assert Schedule.objects.get() == schedule


def test_what_was_typed_stays_when_another_spider_is_chosen(page: Client, job: Job) -> None:
    SpiderFactory(name="news", version__parameter_schema=SCHEMA)
    boxes = {**WHEN, "when-kind": "cron", "when-cron": "1 2 3 * *", "shown_spider": "weather"}
    text = page.post("/jobs/parameters/", {**form(**boxes), "spider": "news"}).content.decode()
    assert 'value="1 2 3 * *"' in text
    assert 'value="Asia/Shanghai"' in text


# -- the preview --------------------------------------------------------------------------------------------------


def preview(page: Client, address: str = "/schedules/preview/", **boxes: Any) -> str:
    return page.get(address, {**WHEN, **boxes}).content.decode()


def test_the_preview_tells_words_and_the_next_ten_times_in_both_zones(page: Client) -> None:
    text = preview(page)
    assert "every day at 09:30" in text
    assert text.count("<tr>") == 11
    assert "09:30" in text
    assert "01:30" in text
    assert 'data-expression="30 9 * * *"' in text


def test_the_preview_keeps_to_start_and_end(page: Client, now: datetime) -> None:
    year = now.year + 1
    text = preview(page, **{"when-start_at": f"{year}-01-01T00:00", "when-end_at": f"{year}-01-03T23:00"})
    assert text.count("<tr>") == 4
    assert f"{year}-01-01 09:30" in text
    assert "After these there are none." in text


def test_an_empty_box_is_no_fault_while_somebody_types(page: Client) -> None:
    text = preview(page, **{"when-kind": "once", "when-once_at": ""})
    assert "as soon as it is known when" in text
    assert "invalid-feedback" not in text


def test_the_preview_tells_a_fault_where_the_box_is(page: Client) -> None:
    text = preview(page, **{"when-kind": "cron", "when-cron": "61 * * * *"})
    assert 'id="id_when-cron-faults" hx-swap-oob="true"><div class="invalid-feedback' in text


@pytest.mark.parametrize("query", ["", "?schedule=x", "?job=99999999999999999999", "?when-kind=%00&when-cron=%00"])
def test_a_preview_of_nonsense_is_a_page(page: Client, query: str) -> None:
    assert page.get(f"/schedules/preview/{query}").status_code == 200


# -- the job's page, the list -------------------------------------------------------------------------------------


def test_the_job_shows_its_schedules_in_words(page: Client, job: Job, schedule: Schedule) -> None:
    text = page.get(f"/jobs/{job.pk}/").content.decode()
    assert "every weekday at 06:00" in text
    assert "Europe/Berlin" in text
    assert "Early" in text
    assert 'aria-checked="true"' in text


def test_the_job_warns_of_runs_longer_than_the_interval(page: Client, job: Job, now: datetime) -> None:
    schedules.create_schedule(job=job, by=SYSTEM, now=now, type="interval", every=600)
    RunFactory(job=job, state=State.SUCCEEDED, started_at=now - timedelta(hours=1), finished_at=now)
    assert "on average" in page.get(f"/jobs/{job.pk}/").content.decode()


def test_a_schedule_is_switched_paused_and_resumed(page: Client, schedule: Schedule) -> None:
    page.post(f"/schedules/{schedule.pk}/switch/", {"on": "0"})
    assert not Schedule.objects.get().enabled
    page.post(f"/schedules/{schedule.pk}/switch/", {"on": "1"})
    assert Schedule.objects.get().enabled
    page.post(f"/schedules/{schedule.pk}/pause/", {"reason": "Site closed", "for": "2h"})
    paused = Schedule.objects.get()
    assert (paused.paused_why, paused.paused_by) == ("Site closed", "ada")
    assert paused.paused_at
    assert paused.paused_until
    assert paused.paused_until - paused.paused_at == timedelta(hours=2)
    text = page.get("/schedules/").content.decode()
    assert "By ada: Site closed" in text
    page.post(f"/schedules/{schedule.pk}/resume/")
    assert not is_paused(Schedule.objects.get(), datetime.now(UTC))
    assert "By ada: Site closed" not in page.get("/schedules/").content.decode()


@pytest.mark.parametrize("span", ["soon", "-1", "9" * 12 + "w"])
def test_a_pause_of_a_strange_length_does_no_harm(page: Client, schedule: Schedule, span: str) -> None:
    assert page.post(f"/schedules/{schedule.pk}/pause/", {"reason": "x", "for": span}).status_code == 302


def test_a_pause_needs_a_reason(page: Client, schedule: Schedule) -> None:
    page.post(f"/schedules/{schedule.pk}/pause/", {"reason": " "})
    assert Schedule.objects.get().paused_at is None


def test_a_schedule_is_made_and_deleted_on_its_own_page(page: Client, job: Job) -> None:
    page.post(f"/jobs/{job.pk}/schedules/new/", {**WHEN, "when-parameters": '{"pages": 7}'})
    made = Schedule.objects.get()
    assert (made.job, made.parameters) == (job, {"pages": 7})
    assert page.get(f"/schedules/{made.pk}/delete/").status_code == 200
    page.post(f"/schedules/{made.pk}/delete/")
    assert not Schedule.objects.exists()


def test_the_list_begins_with_what_fires_next_and_goes_on(
    page: Client, job: Job, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.jobs.views.schedules.PAGE_SIZE", 2)
    hours = [
        schedules.create_schedule(job=job, by=SYSTEM, now=now, type="interval", every=hour * 3600) for hour in (3, 1, 2)
    ]
    off = schedules.create_schedule(job=job, by=SYSTEM, now=now, type="interval", every=60, enabled=False)
    first = page.get("/schedules/").context
    assert [line.schedule for line in first["lines"]] == [hours[1], hours[2]]
    second = page.get("/schedules/", {"after": first["next"]}).context
    assert [line.schedule for line in second["lines"]] == [hours[0], off]
    assert second["next"] == ""


def test_the_list_is_filtered(page: Client, schedule: Schedule, now: datetime) -> None:
    other = schedules.create_schedule(
        job=JobFactory(name="News"), by=SYSTEM, now=now, type="interval", every=60, enabled=False
    )
    for query, found in (
        ("state=off", [other]),
        ("state=on", [schedule]),
        ("state=paused", []),
        ("type=interval", [other]),
        ("q=early", [schedule]),
        ("q=news", [other]),
        ("state=nonsense", [schedule, other]),
    ):
        assert [line.schedule for line in page.get(f"/schedules/?{query}").context["lines"]] == found, query


@pytest.mark.parametrize("query", ["after=~", "after=x~1", "after=~99", "q=%00", "after=2026-01-01~5", "type=%00"])
def test_an_address_that_makes_no_sense_still_shows_a_list(page: Client, schedule: Schedule, query: str) -> None:
    assert page.get(f"/schedules/?{query}").status_code == 200


def test_a_schedule_that_cannot_be_read_says_why(page: Client, schedule: Schedule) -> None:
    Schedule.objects.update(trouble="The zone is gone.", timezone="Mars/Olympus", next_fire_at=None)
    for path in ("/schedules/", f"/jobs/{schedule.job_id}/", "/schedules/calendar/", f"/schedules/{schedule.pk}/edit/"):
        assert page.get(path).status_code == 200, path
    assert "The zone is gone." in page.get("/schedules/").content.decode()


def test_the_job_list_tells_the_next_time(page: Client, schedule: Schedule, now: datetime) -> None:
    text = page.get("/jobs/").content.decode()
    assert f'datetime="{Schedule.objects.get().next_fire_at:%Y-%m-%dT%H:%M}' in text
    schedules.set_enabled(schedule=schedule, by=SYSTEM, now=now, enabled=False)
    assert "Off" in page.get("/jobs/").content.decode()


def test_pages_take_few_queries_however_many_schedules(page: Client, job: Job, now: datetime) -> None:
    for number in range(12):
        made = schedules.create_schedule(job=job, by=SYSTEM, now=now, type="interval", every=600 + number)
        due(made, now - timedelta(hours=number), run=RunFactory(job=job))
    for path in ("/schedules/", f"/jobs/{job.pk}/", f"/jobs/{job.pk}/ledger/", "/schedules/calendar/?view=week"):
        page.get(path)
        with CaptureQueriesContext(connection) as captured:
            assert page.get(path).status_code == 200
        assert len(captured) <= 17, path


# -- the switch of all scheduling ---------------------------------------------------------------------------------


def test_everybody_sees_that_scheduling_is_off_and_who_did_it(
    page: Client, client_of: Callable[[User], Client], schedule: Schedule
) -> None:
    assert page.post("/schedules/off/", {"why": ""}).status_code == 422
    page.post("/schedules/off/", {"why": "Network work"})
    assert Clock.objects.get().off_by == "ada"
    text = client_of(UserFactory()).get("/runs/").content.decode()
    assert "All scheduling is off" in text
    assert "Network work" in text
    page.post("/schedules/on/")
    assert Clock.objects.get().off_since is None


def test_a_scheduler_that_is_late_is_told_after_a_minute(page: Client, schedule: Schedule, now: datetime) -> None:
    Schedule.objects.update(next_fire_at=now - timedelta(seconds=30))
    assert "The scheduler is late" not in page.get("/runs/").content.decode()
    Schedule.objects.update(next_fire_at=now - timedelta(minutes=12, seconds=5))
    assert "The scheduler is late by 12 min" in page.get("/runs/").content.decode()


# -- ledger and calendar ------------------------------------------------------------------------------------------


def test_the_ledger_is_filtered_by_outcome_and_time(page: Client, schedule: Schedule, now: datetime) -> None:
    run = RunFactory(job=schedule.job, state=State.SUCCEEDED)
    due(schedule, now - timedelta(hours=3), run=run)
    due(schedule, now - timedelta(hours=2), Outcome.SKIPPED, "paused", detail={"by": "ada", "why": "Closed"})
    due(schedule, now - timedelta(hours=1), Outcome.MISSED, "misfire_skip")
    address = f"/jobs/{schedule.job_id}/ledger/"
    text = page.get(address).content.decode()
    assert f"/runs/{run.pk}/" in text
    assert "Closed" in text
    since = f"{now - timedelta(hours=2, minutes=30):%Y-%m-%dT%H:%M}"
    for query, count in (({}, 3), ({"outcome": "skipped"}, 1), ({"from": since}, 2), ({"to": since}, 1)):
        assert len(page.get(address, query).context["rows"]) == count, query


def test_why_did_it_not_fire_is_answered(page: Client, schedule: Schedule, now: datetime) -> None:
    at = now - timedelta(hours=2)
    due(schedule, at, Outcome.SKIPPED, "overlap_skip")
    address = f"/jobs/{schedule.job_id}/ledger/"
    answers = page.get(address, {"at": f"{at:%Y-%m-%dT%H:%M}"}).context["answers"]
    assert answers[0][1].firing.reason == "overlap_skip"
    assert "wrong_at" in page.get(address, {"at": "yesterday"}).context
    bare = page.get(f"/jobs/{JobFactory().pk}/ledger/", {"at": f"{at:%Y-%m-%dT%H:%M}"})
    assert bare.status_code == 200


@pytest.mark.parametrize(
    "query", ["from=x&to=y", "after=~", "after=zz", "at=9999-12-31T23:59", "schedule=x", "from=%00"]
)
def test_a_ledger_asked_for_nonsense_is_a_page(page: Client, schedule: Schedule, query: str) -> None:
    assert page.get(f"/jobs/{schedule.job_id}/ledger/?{query}").status_code == 200


def test_the_calendar_counts_what_became_of_the_times_of_a_day(page: Client, schedule: Schedule) -> None:
    nine = datetime(2026, 3, 4, 9, 0, tzinfo=UTC)
    for minute, state in ((0, State.SUCCEEDED), (20, State.SUCCEEDED), (40, State.FAILED)):
        at = nine + timedelta(minutes=minute)
        run = RunFactory(job=schedule.job, state=state, started_at=at, finished_at=at + timedelta(seconds=60 + minute))
        due(schedule, at, run=run)
    due(schedule, nine + timedelta(hours=2), Outcome.MISSED, "misfire_skip", times=5)
    row = page.get("/schedules/calendar/?date=2026-03-04").context["rows"][0]
    assert {(tally.what, tally.times) for tally in row.cells[9].tallies} == {("succeeded", 2), ("failed", 1)}
    assert row.cells[9].what == "failed"
    assert "Succeeded: 2 (1m 10s on average, 1m 20s at most)" in row.cells[9].title
    assert [(tally.what, tally.times) for tally in row.cells[11].tallies] == [("missed", 5)]
    assert [slot for slot, cell in enumerate(row.cells) if cell.tallies] == [9, 11]
    week = page.get("/schedules/calendar/?view=week&date=2026-03-04").context["rows"][0]
    assert [slot for slot, cell in enumerate(week.cells) if cell.tallies] == [2]


def test_the_calendar_shows_what_is_to_come(page: Client, job: Job, now: datetime) -> None:
    schedules.create_schedule(job=job, by=SYSTEM, now=now, type="cron", cron="30 12 * * *")
    schedules.create_schedule(job=job, by=SYSTEM, now=now, type="interval", every=1)
    day = (now + timedelta(days=3)).date().isoformat()
    row = page.get(f"/schedules/calendar/?date={day}").context["rows"][0]
    assert row.cells[12].what == "planned"
    assert row.cells[23].tallies[0].times == 0


def test_a_member_sees_only_what_is_theirs(
    client_of: Callable[[User], Client], schedule: Schedule, now: datetime
) -> None:
    other = schedules.create_schedule(job=JobFactory(name="of others"), by=SYSTEM, now=now, type="interval", every=3600)
    due(other, now)
    user = UserFactory()
    grant(user, "view", schedule.job)
    client = client_of(user)
    for path in ("/schedules/", "/schedules/calendar/", "/schedules/calendar/?view=week"):
        text = client.get(path).content.decode()
        assert "Weather" in text
        assert "of others" not in text
    assert "claw-switch" not in client.get("/schedules/").content.decode().replace("claw-switch-cell", "")


def test_run_and_person_are_not_needed_for_a_row(page: Client, schedule: Schedule, now: datetime) -> None:
    due(schedule, now - timedelta(minutes=5))
    Run.objects.all().delete()
    schedules.delete_schedule(schedule=schedule, by=person(UserFactory()), now=now)
    assert "a schedule that is deleted" in page.get(f"/jobs/{schedule.job_id}/ledger/").content.decode()
