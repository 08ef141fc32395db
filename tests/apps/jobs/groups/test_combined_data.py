"""How far a group is, and all its items as one table."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime

import pytest

from apps.accounts.models import User
from apps.accounts.rights import grant
from apps.core.actors import person
from apps.jobs.models import Job
from apps.jobs.services.groups import start_backfill, start_inputs
from apps.runs.models import Batch, Run
from apps.runs.selectors import groups
from apps.runs.states import State
from tests.apps.jobs.groups.grouped import end, runs_of, schedule_of, searching
from tests.apps.runs.logged import store_items
from tests.factories import AdminFactory, AttemptFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def user(db: None) -> User:
    return AdminFactory()


@pytest.fixture
def job(db: None) -> Job:
    return searching()


@pytest.fixture
def batch(job: Job, user: User, now: datetime) -> Batch:
    rows = [{"keyword": "sea", "pages": 1}, {"keyword": "=SUM(A1)"}, {"keyword": "none"}]
    batch = start_inputs(job=job, rows=rows, by=person(user), now=now)
    first, second, _third = runs_of(batch)
    store_items(first, [{"title": "a", "price": 1}, {"title": "b,c", "run": "x"}])
    store_items(second, [{"title": "=1+1", "tags": ["x"]}])
    return batch


def table(batch: Batch, user: User) -> list[dict[str, str]]:
    text = b"".join(groups.items_csv(batch, user)).decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_the_table_has_the_run_the_row_and_the_item(batch: Batch, user: User) -> None:
    first, second, _third = runs_of(batch)

    rows = table(batch, user)

    assert list(rows[0]) == ["run", "row", "input.keyword", "input.pages", "price", "title", "item.run", "tags"]
    assert [(row["run"], row["row"], row["input.pages"]) for row in rows] == [
        (str(first.pk), "1", "1"),
        (str(first.pk), "1", "1"),
        (str(second.pk), "2", "3"),
    ]
    assert [row["item.run"] for row in rows] == ["", "x", ""]


def test_no_cell_is_a_formula_whether_scraped_or_typed(batch: Batch, user: User) -> None:
    last = table(batch, user)[-1]

    assert (last["input.keyword"], last["title"]) == ("'=SUM(A1)", "'=1+1")


def test_lines_of_json_keep_row_and_item_apart(batch: Batch, user: User) -> None:
    lines = [json.loads(line) for line in b"".join(groups.items_jsonl(batch, user)).splitlines()]

    assert lines[1] == {
        "run": runs_of(batch)[0].pk,
        "row": 1,
        "input": {"keyword": "sea", "pages": 1},
        "item": {"title": "b,c", "run": "x"},
    }


def test_items_of_discarded_attempts_stay_out(batch: Batch, user: User) -> None:
    run = runs_of(batch)[0]
    AttemptFactory(run=run, number=1, items_discarded=True)
    store_items(run, [{"fresh": True}], first=9, attempt=2)

    rows = table(batch, user)

    assert list(rows[0])[4:] == ["fresh", "title", "tags"] or list(rows[0])[4:] == ["fresh", "tags", "title"]
    assert len(rows) == 2


def test_numbers_of_any_size_come_through(job: Job, user: User, now: datetime) -> None:
    batch = start_inputs(job=job, rows=[{"keyword": "x"}], by=person(user), now=now)
    store_items(runs_of(batch)[0], [{"n": 12345678901234567890}])

    assert table(batch, user)[0]["n"] == "12345678901234567890"
    assert b"12345678901234567890" in b"".join(groups.items_jsonl(batch, user))


def test_a_backfill_has_the_time_of_each_run(job: Job, user: User) -> None:
    first = datetime(2026, 11, 20, 0, 5, tzinfo=UTC)
    noon = datetime(2026, 11, 30, 12, tzinfo=UTC)
    batch = start_backfill(schedule=schedule_of(job), by=person(user), now=noon, start=first, end=first)
    store_items(runs_of(batch)[0], [{"n": 1}])

    assert table(batch, user)[0] == {
        "run": str(runs_of(batch)[0].pk),
        "scheduled_for": "2026-11-20T00:05:00+00:00",
        "n": "1",
    }


def test_without_items_there_is_a_header_only(job: Job, user: User, now: datetime) -> None:
    batch = start_inputs(job=job, rows=[{"keyword": "x"}], by=person(user), now=now)

    assert b"".join(groups.items_csv(batch, user)) == b"run,input.keyword\r\n"
    assert b"".join(groups.items_jsonl(batch, user)) == b""


def test_only_data_that_one_may_take_away_is_in_it(batch: Batch) -> None:
    viewer, exporter = UserFactory(), UserFactory()
    grant(viewer, "viewer", batch.project)
    grant(exporter, "auditor", batch.project)

    assert table(batch, viewer) == []
    assert len(table(batch, exporter)) == 3


def test_progress_counts_the_states(batch: Batch) -> None:
    first, second, _third = runs_of(batch)
    end([first])
    end([second], State.LOST)

    found = groups.progress(batch)

    assert (found.total, found.over, found.succeeded, found.failed, found.waiting, found.under_way) == (
        3,
        2,
        1,
        1,
        1,
        0,
    )
    assert groups.progress_of([batch])[batch.pk] == found


def test_rows_come_in_their_order_page_after_page(batch: Batch) -> None:
    page = groups.group_runs(batch, limit=2)
    rest = groups.group_runs(batch, after=page[-1].pk, limit=2)

    assert [run.batch_key for run in (*page, *rest)] == ["1", "2", "3"]
    assert [run.batch_key for run in groups.group_runs(batch, states=[State.WAITING])] == ["3"]
    assert Run.objects.count() == 3
