"""Schedules, their ledger and the switch of all of them over the API."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.accounts.rights import grant
from apps.core.actors import person
from apps.jobs.models import Clock, Firing, Job, Outcome, Schedule
from apps.jobs.services.schedules import create_schedule
from apps.runs.models import Run
from tests.factories import AdminFactory, JobFactory, RunFactory, UserFactory

pytestmark = pytest.mark.django_db

URL = "/api/v1/schedules/"
FAR = "2031-05-06T12:00:00Z"


@pytest.fixture
def schedule(job: Job, owner: User, now: datetime) -> Schedule:
    return create_schedule(job=job, by=person(owner), now=now, type="cron", cron="@daily", timezone="Europe/Berlin")


def as_(user: User) -> APIClient:
    client = APIClient()
    client.force_authenticate(user)
    return client


def member(job: Job, action: str) -> APIClient:
    user = UserFactory()
    grant(user, action, job)
    return as_(user)


def test_a_schedule_is_made_and_shown(api: APIClient, job: Job) -> None:
    answer = api.post(URL, {"job": job.pk, "type": "cron", "cron": "30 9 * * 1-5", "timezone": "Asia/Shanghai"})

    assert answer.status_code == 201, answer.json()
    body = answer.json()
    assert (body["cron"], body["every"], body["at"], body["enabled"], body["trouble"]) == (
        "30 9 * * 1-5", None, None, True, "",
    )  # fmt: skip
    assert "09:30" in body["words"]
    assert body["next_at"].endswith("01:30:00Z")
    assert body["misfire"] == {"policy": "once", "grace": 600, "cap": 10, "spacing": 0}
    assert api.get(f"{URL}{body['id']}/").json() == body


def test_an_interval_and_a_date_are_made(api: APIClient, job: Job) -> None:
    each = api.post(URL, {"job": job.pk, "type": "interval", "every": "1h30m", "jitter": "1 min"}).json()
    assert (each["every"], each["cron"], each["jitter"]) == (5400, None, 60)

    once = api.post(URL, {"job": job.pk, "type": "once", "at": FAR, "parameters": {"count": 1}}).json()
    assert (once["at"], once["next_at"], once["parameters"]) == (FAR, FAR, {"count": 1})


def test_what_was_read_can_be_sent_back_changed(api: APIClient, schedule: Schedule) -> None:
    body = api.get(f"{URL}{schedule.pk}/").json()

    answer = api.patch(f"{URL}{schedule.pk}/", {**body, "cron": "0 5 * * *", "enabled": False})

    assert answer.status_code == 200, answer.json()
    assert (answer.json()["cron"], answer.json()["enabled"], answer.json()["next_at"]) == ("0 5 * * *", False, None)
    assert answer.json()["timezone"] == "Europe/Berlin"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"type": "cron"}, "cron"),
        ({"type": "cron", "cron": None}, "cron"),
        ({"type": "cron", "cron": "* * * *"}, "cron"),
        ({"type": "cron", "cron": "0 0 31 2 *"}, "cron"),
        ({"type": "cron", "cron": 5}, "cron"),
        ({"type": "weekly"}, "type"),
        ({}, "type"),
        ({"type": "interval", "every": 0}, "every"),
        ({"type": "interval", "every": "-5 s"}, "every"),
        ({"type": "interval", "every": True}, "every"),
        ({"type": "interval", "every": 60, "jitter": "2 min"}, "jitter"),
        ({"type": "once", "at": "2020-01-01T00:00:00Z"}, "at"),
        ({"type": "once", "at": "tomorrow"}, "at"),
        ({"type": "once", "at": "9999-12-31T23:59:59-14:00"}, "at"),
        ({"type": "cron", "cron": "@daily", "timezone": "Mars/Olympus"}, "timezone"),
        ({"type": "cron", "cron": "@daily", "timezone": "../UTC"}, "timezone"),
        ({"type": "cron", "cron": "@daily", "start_at": FAR, "end_at": "2031-05-06T11:00:00Z"}, "end_at"),
        ({"type": "cron", "cron": "@daily", "misfire": {"policy": "never"}}, "misfire.policy"),
        ({"type": "cron", "cron": "@daily", "misfire": {"cap": 0}}, "misfire.cap"),
        ({"type": "cron", "cron": "@daily", "misfire": {"often": 1}}, "misfire.often"),
        ({"type": "cron", "cron": "@daily", "parameters": {"count": 0}}, "parameters.count"),
        ({"type": "cron", "cron": "@daily", "parameters": {"count": "x"}}, "parameters.count"),
        ({"type": "cron", "cron": "@daily", "parameters": {"password": "x"}}, "parameters.password"),
        ({"type": "cron", "cron": "@daily", "colour": "red"}, "colour"),
        ({"type": "cron", "cron": "@daily", "job": 2**62}, "job"),
        ({"type": "cron", "cron": "@daily", "job": "x"}, "job"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_input_is_told_at_its_field(api: APIClient, job: Job, body: dict[str, Any], field: str) -> None:
    answer = api.post(URL, {"job": job.pk, **body})

    assert answer.status_code == 400, answer.json()
    assert list(answer.json()["fields"]) == [field]
    assert not Schedule.objects.exists()


def test_the_job_cannot_be_changed(api: APIClient, schedule: Schedule, project: Any) -> None:
    answer = api.patch(f"{URL}{schedule.pk}/", {"job": schedule.job_id + 1})

    assert list(answer.json()["fields"]) == ["job"]


def test_a_schedule_is_deleted(api: APIClient, schedule: Schedule) -> None:
    assert api.delete(f"{URL}{schedule.pk}/").status_code == 204
    assert api.get(f"{URL}{schedule.pk}/").status_code == 404


def test_a_schedule_is_paused_with_a_reason_and_resumed(api: APIClient, schedule: Schedule, owner: User) -> None:
    assert list(api.post(f"{URL}{schedule.pk}/pause/", {}).json()["fields"]) == ["reason"]
    assert list(
        api.post(f"{URL}{schedule.pk}/pause/", {"reason": "x", "until": "2020-01-01T00:00:00Z"}).json()["fields"]
    ) == ["until"]

    body = api.post(f"{URL}{schedule.pk}/pause/", {"reason": "site moves", "until": FAR}).json()
    assert body["paused"] | {"since": ""} == {
        "since": "", "until": FAR, "by": f"api: {owner.username}", "reason": "site moves",
    }  # fmt: skip

    assert api.post(f"{URL}{schedule.pk}/resume/").json()["paused"] is None


def test_the_list_can_be_narrowed_and_has_pages(api: APIClient, schedule: Schedule, owner: User, now: datetime) -> None:
    other = JobFactory(spider=schedule.job.spider)
    for hour in range(3):
        create_schedule(job=other, by=person(owner), now=now, type="cron", cron=f"0 {hour} * * *", enabled=hour > 0)

    assert len(api.get(URL).json()["results"]) == 4
    assert len(api.get(URL, {"job": other.pk}).json()["results"]) == 3
    assert len(api.get(URL, {"enabled": "false"}).json()["results"]) == 1
    first = api.get(URL, {"limit": 3}).json()
    assert [row["id"] for row in api.get(first["next"]).json()["results"]] == [Schedule.objects.latest("pk").pk]


# -- rights -------------------------------------------------------------------------------------------------------


CHANGES: list[tuple[str, str, Any]] = [
    ("patch", "", {"name": "x"}),
    ("delete", "", None),
    ("post", "pause/", {"reason": "x"}),
    ("post", "resume/", None),
]


def test_schedules_of_others_are_not_there(schedule: Schedule, job: Job) -> None:
    client = as_(UserFactory())

    assert client.get(URL).json()["results"] == []
    for method, path, body in (("get", "", None), *CHANGES):
        assert getattr(client, method)(f"{URL}{schedule.pk}/{path}", body).status_code == 404
    assert client.post(URL, {"job": job.pk, "type": "cron", "cron": "@daily"}).json()["fields"].keys() == {"job"}
    assert client.get(f"/api/v1/jobs/{job.pk}/ledger/").status_code == 404
    assert client.get(f"/api/v1/jobs/{job.pk}/ledger/why/", {"at": FAR}).status_code == 404


@pytest.mark.parametrize("action", ["view", "edit", "run"])
def test_to_see_a_job_is_not_to_schedule_it(schedule: Schedule, job: Job, action: str) -> None:
    user = UserFactory()
    grant(user, "view", job)
    grant(user, action, job)
    client = as_(user)

    assert client.get(f"{URL}{schedule.pk}/").status_code == 200
    for method, path, body in CHANGES:
        assert getattr(client, method)(f"{URL}{schedule.pk}/{path}", body).status_code == 403
    assert client.post(URL, {"job": job.pk, "type": "cron", "cron": "@daily"}).status_code == 403
    schedule.refresh_from_db()
    assert (schedule.name, schedule.paused_at) == ("", None)


def test_who_may_schedule_may_change_it(schedule: Schedule, job: Job) -> None:
    user = UserFactory()
    grant(user, "operator", job)

    assert as_(user).patch(f"{URL}{schedule.pk}/", {"cron": "0 1 * * *"}).status_code == 200


# -- the switch ---------------------------------------------------------------------------------------------------


def test_everybody_sees_the_switch_and_staff_turns_it(api: APIClient) -> None:
    assert api.get("/api/v1/scheduling/").json() == {"on": True, "since": None, "by": "", "reason": ""}
    assert api.post("/api/v1/scheduling/off/", {"reason": "x"}).status_code == 403
    assert api.post("/api/v1/scheduling/on/").status_code == 403
    assert not Clock.objects.exists()

    admin = as_(AdminFactory())
    assert list(admin.post("/api/v1/scheduling/off/", {}).json()["fields"]) == ["reason"]
    body = admin.post("/api/v1/scheduling/off/", {"reason": "database moves"}).json()
    assert (body["on"], body["reason"]) == (False, "database moves")
    assert api.get("/api/v1/scheduling/").json()["on"] is False
    assert admin.post("/api/v1/scheduling/on/").json()["on"] is True


# -- the ledger ---------------------------------------------------------------------------------------------------

THREE = datetime(2026, 3, 1, 3, tzinfo=UTC)


def due(schedule: Schedule, at: datetime, outcome: str = Outcome.FIRED, **values: Any) -> Firing:
    return Firing.objects.create(
        job=schedule.job, schedule=schedule, scheduled_for=at, outcome=outcome, decided_at=at, **values
    )


def test_the_ledger_is_read_newest_first_and_in_pages(api: APIClient, schedule: Schedule) -> None:
    run: Run = RunFactory(job=schedule.job)
    rows = [due(schedule, THREE + timedelta(days=day), run=run if day == 4 else None) for day in range(5)]

    first = api.get(f"/api/v1/jobs/{schedule.job_id}/ledger/", {"limit": 2}).json()
    due(schedule, THREE + timedelta(days=9))
    second = api.get(first["next"]).json()
    third = api.get(second["next"]).json()

    seen = [row["id"] for page in (first, second, third) for row in page["results"]]
    assert seen == [row.pk for row in reversed(rows)]
    assert third["next"] is None
    assert (first["results"][0]["run"], first["results"][0]["run_state"]) == (run.pk, "queued")
    assert first["results"][0]["due_at"] == "2026-03-05T03:00:00Z"


def test_the_ledger_can_be_narrowed(api: APIClient, schedule: Schedule) -> None:
    many = due(schedule, THREE, Outcome.MISSED, reason="misfire_skip", until=THREE + timedelta(days=3), times=2000)
    paused = due(
        schedule, THREE + timedelta(days=5), Outcome.SKIPPED, reason="paused", detail={"by": "ann", "why": "moving"}
    )

    def ids(**query: Any) -> list[int]:
        return [row["id"] for row in api.get(f"/api/v1/jobs/{schedule.job_id}/ledger/", query).json()["results"]]

    assert ids() == [paused.pk, many.pk]
    assert ids(outcome="missed") == [many.pk]
    assert ids(since="2026-03-03T00:00:00Z") == [paused.pk, many.pk]
    assert ids(since="2026-03-05T00:00:00Z") == [paused.pk]
    assert ids(until="2026-03-05T00:00:00Z") == [many.pk]
    assert ids(schedule=schedule.pk) == [paused.pk, many.pk]
    assert ids(schedule=schedule.pk + 1) == []
    shown = api.get(f"/api/v1/jobs/{schedule.job_id}/ledger/").json()["results"]
    assert "ann" in shown[0]["sentence"]
    assert "2000" in shown[1]["sentence"].replace(",", "")


@pytest.mark.parametrize(
    "query",
    [
        {"after": "x"},
        {"after": "20260301T030000.000000~-1"},
        {"after": "~5"},
        {"after": "20260301T030000.000000~" + "9" * 30},
        {"outcome": "lost"},
        {"since": "yesterday"},
        {"schedule": "x"},
        {"page": 2},
    ],
)
def test_a_bad_question_to_the_ledger_is_refused(api: APIClient, schedule: Schedule, query: dict[str, str]) -> None:
    answer = api.get(f"/api/v1/jobs/{schedule.job_id}/ledger/", query)

    assert answer.status_code == 400
    assert list(answer.json()["fields"]) == list(query)


def test_it_can_be_asked_why_a_job_did_not_run(api: APIClient, schedule: Schedule) -> None:
    due(schedule, THREE, Outcome.MISSED, reason="misfire_skip")

    body = api.get(f"/api/v1/jobs/{schedule.job_id}/ledger/why/", {"at": "2026-03-01T03:00:40Z"}).json()
    assert body["answers"][0]["firing"]["outcome"] == "missed"
    assert body["text"] == body["answers"][0]["sentence"]

    body = api.get(f"/api/v1/jobs/{schedule.job_id}/ledger/why/", {"at": "2026-03-01T04:00:00Z"}).json()
    assert body["answers"][0]["firing"] is None
    assert body["answers"][0]["schedule"] == schedule.pk
    assert list(api.get(f"/api/v1/jobs/{schedule.job_id}/ledger/why/").json()["fields"]) == ["at"]
