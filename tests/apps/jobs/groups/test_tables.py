"""A pasted table as rows of a job."""

from __future__ import annotations

from datetime import datetime

import pytest

from apps.core.actors import Actor, person
from apps.core.errors import Invalid
from apps.jobs.models import Job
from apps.jobs.services.groups import InputTable, columns_of, start_inputs, table_of_inputs
from tests.apps.jobs.groups.grouped import runs_of, searching
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def by(db: None) -> Actor:
    return person(UserFactory())


@pytest.fixture
def job(db: None) -> Job:
    return searching(parameters={"keyword": "sea", "pages": 5})


def read(job: Job, by: Actor, now: datetime, text: str, column: str = "") -> InputTable:
    return table_of_inputs(job=job, text=text, column=column, by=by, now=now)


def test_cells_are_typed_and_empty_ones_left_to_the_job(job: Job, by: Actor, now: datetime) -> None:
    table = read(job, by, now, "keyword,pages\n007,12\nsun,\n")

    assert table.values == [{"keyword": "007", "pages": 12}, {"keyword": "sun"}]
    assert table.faults == {}
    batch = start_inputs(job=job, rows=table.values, by=by, now=now)
    assert runs_of(batch)[1].spec["parameters"] == {"keyword": "sun", "pages": 5}


def test_a_list_may_be_of_one_parameter(job: Job, by: Actor, now: datetime) -> None:
    assert read(job, by, now, "a, b\nc\n", column="keyword").values == [{"keyword": "a, b"}, {"keyword": "c"}]


def test_each_fault_stands_at_its_cell(job: Job, by: Actor, now: datetime) -> None:
    table = read(job, by, now, "keyword\tpages\tday\nsea\tmany\t2026-11-30\n\t0\tsoon\nsun\t3\t{{ today }}\n")

    assert table.faults.keys() == {"rows.1.pages", "rows.2.pages", "rows.2.day"}
    first, second, third = table.rows
    assert [bool(cell.faults) for cell in first.cells] == [False, True, False]
    assert [bool(cell.faults) for cell in second.cells] == [False, True, True]
    assert (first.wrong, second.wrong, third.wrong) == (True, True, False)
    assert (second.number, second.line) == (2, 3)
    assert len(table.wrong_rows) == 2


def test_what_no_cell_is_to_blame_for_stands_at_the_row(by: Actor, now: datetime) -> None:
    table = read(searching(parameters={}), by, now, "pages\n3\n")

    assert table.rows[0].wrong
    assert not table.rows[0].cells[0].faults
    assert table.rows[0].faults


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("keyword,colour\na,b\n", "There is no parameter “colour”"),
        ("keyword,token\na,b\n", "“token” is a secret"),
        ("just\nwords\n", "There is no parameter “just”"),
    ],
)
def test_columns_that_cannot_be_are_refused(job: Job, by: Actor, now: datetime, text: str, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        read(job, by, now, text)


def test_a_list_of_what_the_job_does_not_have_is_refused(job: Job, by: Actor, now: datetime) -> None:
    with pytest.raises(Invalid) as excinfo:
        read(job, by, now, "a\n", column="token")

    assert excinfo.value.fields.keys() == {"column"}


def test_columns_come_as_their_author_ordered_them_without_secrets(job: Job) -> None:
    assert columns_of(job) == ["keyword", "pages", "day"]


def test_texts_that_would_act_elsewhere_are_only_texts(job: Job, by: Actor, now: datetime) -> None:
    words = ["; rm -rf /", "$(id)", "=1+1", "--help", "'; DROP TABLE runs_run; --", "<script>alert(1)</script>"]
    table = read(job, by, now, "\n".join(words), column="keyword")

    assert [row["keyword"] for row in table.values] == words
    assert table.faults == {}


def test_a_template_that_is_none_is_told_at_its_cell(job: Job, by: Actor, now: datetime) -> None:
    table = read(job, by, now, "keyword\n{{ ''.__class__ }}\n{% debug %}\n")

    assert "rows.1.keyword" in table.faults
