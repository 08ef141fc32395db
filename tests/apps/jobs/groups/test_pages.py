"""The pages of tables of inputs, backfills and groups."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps.accounts.models import User
from apps.accounts.rights import grant
from apps.core.actors import person
from apps.jobs.models import Job, Schedule
from apps.jobs.services.groups import start_backfill, start_inputs
from apps.runs.models import Batch, Run
from apps.runs.states import State
from tests.apps.jobs.groups.grouped import end, runs_of, schedule_of, searching
from tests.apps.runs.logged import store_items
from tests.factories import AdminFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def user(db: None) -> User:
    return AdminFactory()


@pytest.fixture
def client(user: User) -> Client:
    return signed_in(user)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")
    return client


@pytest.fixture
def job(db: None) -> Job:
    return searching()


@pytest.fixture
def schedule(job: Job) -> Schedule:
    return schedule_of(job, timezone="Asia/Shanghai")


HTMX = {"HX-Request": "true"}


# -- tables of inputs ---------------------------------------------------------------------------------------------


def test_the_page_names_the_columns_a_table_may_have(client: Client, job: Job) -> None:
    body = client.get(f"/jobs/{job.pk}/inputs/").content.decode()

    assert "keyword, pages, day" in body
    assert "<option>token" not in body
    assert "<option>keyword</option>" in body


def test_what_is_pasted_is_checked_without_starting_anything(client: Client, job: Job) -> None:
    answer = client.post(f"/jobs/{job.pk}/inputs/", {"table": "keyword\tpages\nsea\t1\nsun\tmany\n"}, headers=HTMX)

    body = answer.content.decode()
    assert answer.status_code == 200
    assert "1 of 2 rows are wrong." in body
    assert body.count("claw-cell-wrong") == 1
    assert "Enter a whole number." in body
    assert "<html" not in body
    assert not Run.objects.exists()


def test_a_table_that_fits_is_started(client: Client, job: Job, user: User) -> None:
    asked = {"table": "keyword\nsea\nsun\n", "concurrency": "1", "name": "words", "start": "1"}

    answer = client.post(f"/jobs/{job.pk}/inputs/", asked)

    batch = Batch.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/batches/{batch.pk}/")
    assert (batch.name, batch.concurrency, batch.requested_by, batch.runs.count()) == ("words", 1, user, 2)


def test_a_table_with_a_fault_is_shown_again_as_it_was(client: Client, job: Job) -> None:
    asked = {"table": "keyword,pages\nsea,0\n", "concurrency": "3", "name": "words", "start": "1"}

    answer = client.post(f"/jobs/{job.pk}/inputs/", asked)

    body = answer.content.decode()
    assert answer.status_code == 422
    assert "sea,0" in body
    assert 'value="words"' in body
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "Paste a table, or choose a file."),
        ({"table": "colour\nred\n"}, "There is no parameter “colour”"),
        ({"table": "keyword\nsea\n", "concurrency": "0"}, "This is a whole number from 1 to 1000."),
        ({"table": "keyword\nsea\n", "concurrency": "two"}, "This is a whole number from 1 to 1000."),
        ({"table": "keyword\nsea\n", "concurrency": "²"}, "This is a whole number from 1 to 1000."),
        ({"table": "sea\n", "column": "nothing"}, "There is no parameter “nothing”"),
        ({"table": "keyword\nsea\n", "name": "a" * 201}, "A name has at most 200"),
    ],
)
def test_what_cannot_start_says_why(client: Client, job: Job, asked: dict[str, str], said: str) -> None:
    answer = client.post(f"/jobs/{job.pk}/inputs/", {"start": "1", **asked})

    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert not Run.objects.exists()


def test_a_file_is_put_into_the_box_in_the_encoding_it_has(client: Client, job: Job) -> None:
    file = SimpleUploadedFile("list.csv", "keyword\n海\n".encode("gb18030"), "text/csv")

    body = client.post(f"/jobs/{job.pk}/inputs/", {"file": file}, headers=HTMX).content.decode()

    assert "keyword\n海" in body
    assert "1 row, and it fits." in body


def test_a_file_that_cannot_be_read_says_so(client: Client, job: Job) -> None:
    file = SimpleUploadedFile("list.csv", "keyword\ncafé!\n".encode("cp1252"), "text/csv")

    body = client.post(f"/jobs/{job.pk}/inputs/", {"file": file}, headers=HTMX).content.decode()

    assert "Save it as UTF-8" in body


def test_a_file_may_be_started_at_once(client: Client, job: Job) -> None:
    file = SimpleUploadedFile("list.csv", b"\xef\xbb\xbfkeyword,pages\r\nsea,1\r\n", "text/csv")

    assert client.post(f"/jobs/{job.pk}/inputs/", {"file": file, "concurrency": "2", "start": "1"}).status_code == 302
    assert Run.objects.get().spec["parameters"] == {"keyword": "sea", "pages": 1}


def test_a_long_table_shows_its_head_and_what_is_wrong_below(client: Client, job: Job) -> None:
    table = "keyword,pages\n" + "sea,1\n" * 900 + "sea,0\n" + "sea,1\n" * 99

    body = client.post(f"/jobs/{job.pk}/inputs/", {"table": table}, headers=HTMX).content.decode()

    assert "1 of 1000 rows are wrong." in body
    assert "949 more rows are not shown." in body
    assert body.count("claw-row-wrong") == 1


def test_typed_texts_cannot_act_on_the_page(client: Client, job: Job) -> None:
    table = 'keyword\n<script>alert(1)</script>\n"</textarea><b>"\n'

    body = client.post(f"/jobs/{job.pk}/inputs/", {"table": table, "start": "1", "concurrency": "0"}).content.decode()

    assert "<script>alert" not in body
    assert "</textarea><b>" not in body


# -- backfills ----------------------------------------------------------------------------------------------------


def test_the_times_of_a_range_are_shown_by_the_clock_of_the_schedule(client: Client, schedule: Schedule) -> None:
    asked = {"start": "2026-11-20T00:00", "end": "2026-11-22T00:05"}

    body = client.get(f"/schedules/{schedule.pk}/backfill/", asked, headers=HTMX).content.decode()

    assert "3 times" in body
    assert re.findall(r"2026-11-\d\d 00:05 CST", body) == [f"2026-11-{day} 00:05 CST" for day in (20, 21, 22)]
    assert body.count(" checked") == 3


def test_chosen_times_are_started(client: Client, schedule: Schedule) -> None:
    asked = {
        "start": "2026-11-20T00:00",
        "end": "2026-11-22T00:05",
        "listed": "1",
        "at": ["2026-11-19T16:05:00+00:00", "2026-11-21T16:05:00+00:00"],
        "concurrency": "1",
        "priority": "8",
    }

    answer = client.post(f"/schedules/{schedule.pk}/backfill/", asked)

    batch = Batch.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/batches/{batch.pk}/")
    assert [(run.scheduled_for, run.priority) for run in runs_of(batch)] == [
        (datetime(2026, 11, 19, 16, 5, tzinfo=UTC), 8),
        (datetime(2026, 11, 21, 16, 5, tzinfo=UTC), 8),
    ]


def test_without_a_list_the_whole_range_is_started(client: Client, schedule: Schedule) -> None:
    asked = {"start": "2026-11-20T00:00", "end": "2026-11-22T00:05", "concurrency": "1", "priority": "8"}

    assert client.post(f"/schedules/{schedule.pk}/backfill/", asked).status_code == 302
    assert Run.objects.count() == 3


def test_what_has_run_is_shown_with_its_run_and_not_chosen(client: Client, schedule: Schedule, user: User) -> None:
    at = datetime(2026, 11, 19, 16, 5, tzinfo=UTC)
    noon = datetime(2026, 11, 30, 12, tzinfo=UTC)
    start_backfill(schedule=schedule, by=person(user), now=noon, instants=[at])
    asked = {"start": "2026-11-20T00:00", "end": "2026-11-22T00:05"}

    body = client.get(f"/schedules/{schedule.pk}/backfill/", asked).content.decode()
    again = client.get(f"/schedules/{schedule.pk}/backfill/", {**asked, "again": "on"}, headers=HTMX).content.decode()

    assert "1 of them has a run already" in body
    assert f"/runs/{Run.objects.get().pk}/" in body
    assert body.count('name="at"') == 3
    assert len(re.findall(r'name="at"[^>]* checked', body)) == 2
    assert len(re.findall(r'name="at"[^>]* checked', again)) == 3


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"start": "2026-11-22T00:00", "end": "2026-11-20T00:00"}, "The end lies before the start."),
        ({"end": "2100-01-01T00:00"}, "The end lies in the future"),
        ({"start": "2026-11-20T01:00", "end": "2026-11-20T02:00"}, "no time in this range"),
        ({"start": "soon"}, "Enter a date and a time."),
        ({"start": ""}, "Enter a date and a time."),
        ({"start": "0001-01-01T00:00"}, "Enter a date and a time."),
        ({"start": "2010-01-01T00:00"}, "more than 1000 times"),
        ({"concurrency": "0"}, "This is a whole number from 1 to 1000."),
        ({"priority": "10"}, "This is a whole number from 1 to 9."),
        ({"listed": "1"}, "Choose at least one time."),
    ],
)
def test_a_backfill_that_cannot_start_says_why(
    client: Client, schedule: Schedule, asked: dict[str, str], said: str
) -> None:
    whole = {"start": "2026-11-20T00:00", "end": "2026-11-22T00:05", "concurrency": "1", "priority": "8", **asked}

    answer = client.post(f"/schedules/{schedule.pk}/backfill/", whole)

    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert not Run.objects.exists()


def test_a_backfill_takes_the_right_to_schedule_and_the_right_to_run(schedule: Schedule) -> None:
    who = UserFactory()
    grant(who, "viewer", schedule.job)
    grant(who, "schedule", schedule.job)
    client = signed_in(who)
    assert client.get(f"/schedules/{schedule.pk}/backfill/").status_code == 404

    grant(who, "run", schedule.job)

    assert client.get(f"/schedules/{schedule.pk}/backfill/").status_code == 200


# -- the page of a group ------------------------------------------------------------------------------------------


@pytest.fixture
def batch(job: Job, user: User, now: datetime) -> Batch:
    rows = [{"keyword": "<b>sea</b>"}, {"keyword": "sun"}, {"keyword": "rain"}]
    batch = start_inputs(job=job, rows=rows, by=person(user), now=now, concurrency=2)
    end(runs_of(batch)[:1], State.FAILED)
    return batch


def test_a_group_shows_its_rows_with_their_runs(client: Client, batch: Batch) -> None:
    body = client.get(f"/batches/{batch.pk}/").content.decode()

    assert "&lt;b&gt;sea&lt;/b&gt;" in body
    assert all(f"/runs/{run.pk}/" in body for run in runs_of(batch))
    assert "1 of 3" in body


def test_rows_are_narrowed_by_their_state(client: Client, batch: Batch) -> None:
    first, second, third = runs_of(batch)

    failed = client.get(f"/batches/{batch.pk}/?state=failed_all").content.decode()
    waiting = client.get(f"/batches/{batch.pk}/?state=waiting").content.decode()

    assert f"/runs/{first.pk}/" in failed
    assert f"/runs/{second.pk}/" not in failed
    assert f"/runs/{third.pk}/" in waiting


@pytest.mark.parametrize("query", ["state=nonsense", "after=x", "after=9" * 5, "after=99999999999999999999", "state="])
def test_strange_queries_do_no_harm(client: Client, batch: Batch, query: str) -> None:
    assert client.get(f"/batches/{batch.pk}/?{query}").status_code == 200


def test_a_backfill_shows_its_times_by_the_clock_of_the_schedule(
    client: Client, schedule: Schedule, user: User
) -> None:
    at = datetime(2026, 11, 19, 16, 5, tzinfo=UTC)
    batch = start_backfill(schedule=schedule, by=person(user), now=at + timedelta(days=9), instants=[at])

    assert "2026-11-20 00:05" in client.get(f"/batches/{batch.pk}/").content.decode()


def test_the_data_of_all_runs_is_downloaded(client: Client, batch: Batch) -> None:
    store_items(runs_of(batch)[1], [{"title": "a"}])

    table = client.get(f"/batches/{batch.pk}/items.csv")
    lines = client.get(f"/batches/{batch.pk}/items.jsonl")
    for_excel = client.get(f"/batches/{batch.pk}/items.csv?excel=1")

    assert b"".join(table.streaming_content).startswith(b"run,row,input.keyword,title\r\n")  # type: ignore[attr-defined]
    assert b'"item": {"title": "a"}' in b"".join(lines.streaming_content)  # type: ignore[attr-defined]
    assert b"".join(for_excel.streaming_content).startswith(b"\xef\xbb\xbf")  # type: ignore[attr-defined]
    assert f"batch-{batch.pk}-items.csv" in table["Content-Disposition"]


def test_the_data_takes_the_right_to_take_it_away(batch: Batch) -> None:
    viewer = UserFactory()
    grant(viewer, "viewer", batch.project)
    client = signed_in(viewer)

    assert client.get(f"/batches/{batch.pk}/").status_code == 200
    assert "items.csv" not in client.get(f"/batches/{batch.pk}/").content.decode()
    assert client.get(f"/batches/{batch.pk}/items.csv").status_code == 404


def test_the_failed_are_run_again_from_the_page(client: Client, batch: Batch) -> None:
    answer = client.post(f"/batches/{batch.pk}/again/")

    again = Batch.objects.get(origin=batch)
    assert answer["Location"] == f"/batches/{again.pk}/"
    assert [run.batch_key for run in runs_of(again)] == ["1"]


def test_what_was_stopped_is_taken_up_from_the_page(client: Client, batch: Batch, now: datetime) -> None:
    end(runs_of(batch)[1:], State.CANCELED)
    Batch.objects.update(finished_at=now)
    assert "Run the rest again" in client.get(f"/batches/{batch.pk}/").content.decode()

    client.post(f"/batches/{batch.pk}/again/", {"canceled": "1"})

    assert [run.batch_key for run in runs_of(Batch.objects.get(origin=batch))] == ["1", "2", "3"]
