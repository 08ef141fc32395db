"""Groups over the REST API."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime
from typing import Any

import pytest
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.accounts.rights import grant
from apps.accounts.services import create_token
from apps.jobs.models import Job, Schedule
from apps.runs.models import Batch, Run
from apps.runs.states import State
from tests.apps.jobs.groups.grouped import end, runs_of, schedule_of, searching
from tests.apps.runs.logged import store_items
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db

RANGE = {"start": "2026-11-20T00:00:00Z", "end": "2026-11-22T00:05:00Z"}


@pytest.fixture
def job(db: None) -> Job:
    return searching()


@pytest.fixture
def user(job: Job) -> User:
    user = UserFactory(username="ann")
    grant(user, "operator", job)
    return user


@pytest.fixture
def schedule(job: Job) -> Schedule:
    return schedule_of(job)


@pytest.fixture
def client(user: User, now: datetime) -> APIClient:
    _token, secret = create_token(user=user, name="test", scope="write", now=now)
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {secret}")
    return client


def ask(client: APIClient, path: str, body: Any) -> Any:
    return client.post(f"/api/v1/{path}", body, format="json")


# -- tables of inputs ---------------------------------------------------------------------------------------------


def test_rows_become_a_group(client: APIClient, job: Job) -> None:
    rows = [{"keyword": "sea", "pages": 2}, {"keyword": "sun"}, {"keyword": "rain"}]

    answer = ask(client, f"jobs/{job.pk}/inputs/", {"rows": rows, "name": "words", "concurrency": 2})

    made = answer.json()
    assert answer.status_code == 201
    assert made["progress"] == {
        "total": 3,
        "over": 0,
        "succeeded": 0,
        "failed": 0,
        "waiting": 1,
        "under_way": 2,
        "states": {"queued": 2, "waiting": 1},
    }
    assert (made["kind"], made["name"], made["job"], made["requested_by"]) == ("inputs", "words", job.pk, "api: ann")
    assert client.get(f"/api/v1/jobs/{job.pk}/inputs/").json()["results"] == [made]
    assert client.get(f"/api/v1/jobs/{job.pk}/backfills/").json()["results"] == []


def test_a_csv_text_becomes_a_group(client: APIClient, job: Job) -> None:
    answer = ask(client, f"jobs/{job.pk}/inputs/", {"csv": "keyword,pages\nsea,2\nsun,\n"})

    assert answer.status_code == 201
    assert [run.spec["parameters"] for run in Run.objects.order_by("pk")] == [
        {"keyword": "sea", "pages": 2},
        {"keyword": "sun", "pages": 3},
    ]


def test_a_list_of_values_names_its_parameter(client: APIClient, job: Job) -> None:
    assert ask(client, f"jobs/{job.pk}/inputs/", {"csv": "sea, the\nsun\n", "column": "keyword"}).status_code == 201
    assert Run.objects.order_by("pk")[0].spec["parameters"]["keyword"] == "sea, the"


@pytest.mark.parametrize(
    ("body", "at"),
    [
        ({}, "rows"),
        ({"rows": [{}], "csv": "keyword\na\n"}, "rows"),
        ({"rows": []}, "rows"),
        ({"rows": ["sea"]}, "rows.0"),
        ({"rows": [{"pages": "2"}]}, "rows.1.pages"),
        ({"rows": [{"keyword": "x", "token": "y"}]}, "rows.1.token"),
        ({"rows": [{"keyword": "x"}] * 1001}, "rows"),
        ({"csv": "keyword,pages\nsea,many\n"}, "rows.1.pages"),
        ({"csv": "colour\nred\n"}, "csv"),
        ({"csv": "  "}, "csv"),
        ({"csv": "sea\n", "column": "colour"}, "column"),
        ({"rows": [{"keyword": "x"}], "concurrency": 0}, "concurrency"),
        ({"rows": [{"keyword": "x"}], "concurrency": 1001}, "concurrency"),
        ({"rows": [{"keyword": "x"}], "at_once": 2}, "at_once"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_as_a_whole(
    client: APIClient, job: Job, body: dict[str, Any], at: str
) -> None:
    answer = ask(client, f"jobs/{job.pk}/inputs/", body)

    assert answer.status_code == 400
    assert at in answer.json()["fields"]
    assert not Batch.objects.exists()
    assert not Run.objects.exists()


# -- backfills ----------------------------------------------------------------------------------------------------


def test_a_preview_says_the_times_and_starts_nothing(client: APIClient, job: Job, schedule: Schedule) -> None:
    answer = ask(client, f"jobs/{job.pk}/backfills/", {"schedule": schedule.pk, "preview": True, **RANGE})

    assert answer.status_code == 200
    assert answer.json()["times"] == [
        {"at": f"2026-11-{day}T00:05:00Z", "run": None, "state": None} for day in (20, 21, 22)
    ]
    assert not Batch.objects.exists()


def test_a_backfill_starts_and_its_times_are_taken_then(client: APIClient, job: Job, schedule: Schedule) -> None:
    made = ask(client, f"jobs/{job.pk}/backfills/", {"schedule": schedule.pk, "concurrency": 1, **RANGE})
    preview = ask(client, f"jobs/{job.pk}/backfills/", {"schedule": schedule.pk, "preview": True, **RANGE})
    second = ask(client, f"jobs/{job.pk}/backfills/", {"schedule": schedule.pk, **RANGE})

    assert made.status_code == 201
    assert (made.json()["schedule"], made.json()["progress"]["total"]) == (schedule.pk, 3)
    assert [each["state"] for each in preview.json()["times"]] == ["queued", "waiting", "waiting"]
    assert (second.status_code, second.json()["fields"].keys()) == (400, {"again"})


def test_single_times_are_taken_as_well(client: APIClient, job: Job, schedule: Schedule) -> None:
    body = {"schedule": schedule.pk, "instants": ["2026-11-20T01:05:00+01:00"], "priority": 9}

    assert ask(client, f"jobs/{job.pk}/backfills/", body).status_code == 201
    assert Run.objects.get().scheduled_for.isoformat() == "2026-11-20T00:05:00+00:00"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("body", "at"),
    [
        ({"schedule": 0}, "schedule"),
        ({"start": None}, "start"),
        ({"end": "2026-11-19T00:00:00Z"}, "end"),
        ({"end": "2999-11-19T00:00:00Z"}, "end"),
        ({"end": "soon"}, "end"),
        ({"instants": ["2026-11-20T00:06:00Z"]}, "instants"),
        ({"instants": []}, "instants"),
        ({"priority": 0}, "priority"),
        ({"concurrency": 0}, "concurrency"),
        ({"until": 1}, "until"),
    ],
)
def test_a_range_that_cannot_be_is_refused(
    client: APIClient, job: Job, schedule: Schedule, body: dict[str, Any], at: str
) -> None:
    answer = ask(client, f"jobs/{job.pk}/backfills/", {"schedule": schedule.pk, **RANGE, **body})

    assert answer.status_code == 400
    assert at in answer.json()["fields"]
    assert not Batch.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        {"start": "0001-01-01T00:00:00+14:00"},
        {"start": "0001-01-01T00:00:00Z"},
        {"start": "9999-12-31T23:59:59-14:00", "end": "9999-12-31T23:59:59-14:00"},
        {"start": "0001-01-01T00:00:00Z", "end": "0001-01-01T00:00:00Z"},
        {"instants": ["0001-01-01T00:00:00Z"]},
        {"instants": ["9999-12-31T23:59:59-14:00"]},
        {"schedule": 10**30},
        {"schedule": -1},
        {"schedule": None},
        {"schedule": "1; DROP TABLE"},
        {"concurrency": 10**30},
        {"again": "perhaps"},
        {"instants": "2026"},
        {"instants": [[]]},
    ],
)
def test_hostile_ranges_are_refused_and_break_nothing(
    client: APIClient, job: Job, schedule: Schedule, body: dict[str, Any]
) -> None:
    for preview in (False, True):
        whole = {"schedule": schedule.pk, "preview": preview, **RANGE, **body}
        # A preview does not look at what only a start takes.
        assert ask(client, f"jobs/{job.pk}/backfills/", whole).status_code in ((200, 400) if preview else (400,))
    assert not Batch.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        {"rows": [{"keyword": "a\0b"}]},
        {"rows": [{"keyword": "\ud800"}]},
        {"rows": [{"keyword": 10**400}]},
        {"rows": [{"keyword": [[[[]]]]}]},
        {"rows": [{"": 1}]},
        {"rows": [{"a.b": 1}]},
        {"rows": {"keyword": "x"}},
        {"rows": [None]},
        {"csv": "keyword\na\0b\n"},
        {"csv": "keyword\n" + '"' * 1001},
        {"csv": "\ud800"},
        {"csv": ["keyword"]},
        {"csv": "\ufeff\ufeff"},
        {"csv": "," * 1000},
        {"csv": "keyword\nx\n", "name": "a\0"},
        {"csv": "keyword\nx\n", "column": "\0"},
        {"csv": "keyword\n{{ ''.__class__ }}\n"},
        {"csv": "keyword\n{{ upstream.nobody.x }}\n"},
    ],
)
def test_hostile_tables_are_refused_and_break_nothing(client: APIClient, job: Job, body: dict[str, Any]) -> None:
    content = json.dumps(body)
    answer = client.post(f"/api/v1/jobs/{job.pk}/inputs/", content, content_type="application/json")

    assert answer.status_code == 400, answer.content
    assert not Batch.objects.exists()


def test_a_schedule_of_another_job_is_no_schedule_of_this_one(client: APIClient, job: Job) -> None:
    answer = ask(client, f"jobs/{job.pk}/backfills/", {"schedule": schedule_of(searching()).pk, **RANGE})

    assert (answer.status_code, answer.json()["fields"].keys()) == (400, {"schedule"})


def test_who_may_run_only_may_start_tables_and_no_backfills(job: Job, schedule: Schedule, now: datetime) -> None:
    runner = UserFactory()
    grant(runner, "runner", job)
    client = APIClient()
    client.force_authenticate(runner)

    backfill = ask(client, f"jobs/{job.pk}/backfills/", {"schedule": schedule.pk, **RANGE})

    assert ask(client, f"jobs/{job.pk}/inputs/", {"rows": [{"keyword": "a"}]}).status_code == 201
    assert backfill.status_code == 403


@pytest.mark.parametrize(("scope", "status"), [("read", 403), ("run", 201)])
def test_a_token_that_may_run_may_start_groups(job: Job, user: User, now: datetime, scope: str, status: int) -> None:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {create_token(user=user, name=scope, scope=scope, now=now)[1]}")

    assert ask(client, f"jobs/{job.pk}/inputs/", {"rows": [{"keyword": "a"}]}).status_code == status


# -- data ---------------------------------------------------------------------------------------------------------


def test_the_data_of_a_batch_comes_as_one_file(client: APIClient, job: Job) -> None:
    made = ask(client, f"jobs/{job.pk}/inputs/", {"rows": [{"keyword": "sea"}, {"keyword": "sun"}]}).json()
    runs = runs_of(Batch.objects.get())
    for run in runs:
        store_items(run, [{"title": run.batch_key}])
    end(runs, State.SUCCEEDED)

    table = client.get(f"/api/v1/batches/{made['id']}/items.csv")
    lines = client.get(f"/api/v1/batches/{made['id']}/items.jsonl")

    text = b"".join(table.streaming_content).decode()  # type: ignore[attr-defined]
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [(row["input.keyword"], row["title"]) for row in rows] == [("sea", "1"), ("sun", "2")]
    read = [json.loads(line) for line in b"".join(lines.streaming_content).splitlines()]  # type: ignore[attr-defined]
    assert [line["run"] for line in read] == [run.pk for run in runs]
