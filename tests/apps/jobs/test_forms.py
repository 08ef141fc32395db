"""The form of what every job has."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from django.http import QueryDict

from apps.jobs.forms import JobForm, changed_values
from tests.factories import JobFactory, SpiderFactory

pytestmark = pytest.mark.django_db

GOOD = {
    "name": "a",
    "memory_mb": "512",
    "cpus": "1",
    "timeout_seconds": "60",
    "grace_seconds": "5",
    "priority": "5",
    "env": "",
}


def filled(**changes: Any) -> JobForm:
    return JobForm(QueryDict(urlencode(GOOD | changes)), spider=SpiderFactory())


def test_spans_and_sizes_may_be_typed_in_words() -> None:
    form = filled(memory_mb="1.5 GB", timeout_seconds="1h30m", grace_seconds="1 min")

    assert form.is_valid(), form.errors
    assert [form.changes[name] for name in ("memory_mb", "timeout_seconds", "grace_seconds")] == [1536, 5400, 60]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("memory_mb", "7"),
        ("memory_mb", "much"),
        ("memory_mb", "9" * 40),
        ("timeout_seconds", "0"),
        ("timeout_seconds", "99 d"),
        ("timeout_seconds", "soon"),
        ("grace_seconds", "-1"),
        ("cpus", "nan"),
        ("priority", "10"),
        ("env", "A"),
        ("env", "A=1\nA=2"),
        ("name", ""),
    ],
)
def test_a_fault_is_told_at_its_field_and_what_was_typed_stays(field: str, value: str) -> None:
    form = filled(**{field: value})

    assert not form.is_valid()
    assert list(form.errors) == [field]
    assert form[field].value() == value


def test_stored_values_are_spelled_and_come_back_the_same() -> None:
    job = JobFactory(memory_mb=1536, timeout_seconds=5430, grace_seconds=0)
    shown = JobForm(spider=job.spider, job=job)
    assert 'value="1.5 GB"' in str(shown["memory_mb"])
    assert 'value="1h 30m 30s"' in str(shown["timeout_seconds"])

    typed = {name: str(shown[name].value() or "") for name in shown.fields}
    again = JobForm(QueryDict(urlencode(typed)), spider=job.spider, job=job)
    assert again.is_valid(), again.errors
    assert (again.changes["memory_mb"], again.changes["timeout_seconds"], again.changes["grace_seconds"]) == (
        1536,
        5430,
        0,
    )


def test_a_default_in_other_words_is_no_change() -> None:
    spider = SpiderFactory(version__default_limits={"memory_mb": 512, "timeout_seconds": 3600})
    data = QueryDict(urlencode({"name": spider.title, "memory_mb": "0.5 GB", "timeout_seconds": "1h", "priority": "3"}))

    assert changed_values(data, spider) == {"priority": "3"}
