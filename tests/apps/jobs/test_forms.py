"""The form of what every job has."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import pytest
from django.http import QueryDict

from apps.accounts.rights import grant
from apps.core.errors import Invalid
from apps.core.schema_forms import SchemaForm
from apps.jobs.forms import JobForm, changed_values
from apps.jobs.forms.job_form import BASICS
from apps.jobs.models import Job
from apps.jobs.views.form_page import JobPageForm
from apps.runs.models import Pool
from tests.apps.jobs.nonsense import NONSENSE, Nonsense
from tests.factories import AdminFactory, JobFactory, NodeFactory, SpiderFactory, UserFactory

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

    typed = {name: str(shown[name].value() or "") for name in BASICS}
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


# -- policies -----------------------------------------------------------------------------------------------------


def shown_values(form: JobForm) -> QueryDict:
    """What a browser sends back when nothing is touched."""
    data = QueryDict(mutable=True)
    for name in form.fields:
        value = form[name].value()
        if isinstance(value, list):
            data.setlist(name, [str(each) for each in value])
        elif value is not None:
            data[name] = str(value)
    return data


def page_of(job: Job, typed: dict[str, Any], by: Any) -> JobPageForm:
    data = shown_values(JobForm(spider=job.spider, job=job, by=by))
    for name, value in typed.items():
        data.setlist(name, value if isinstance(value, list) else [value])
    schema = job.spider.current_version.parameter_schema
    return JobPageForm(SchemaForm(schema, data=data), JobForm(data, spider=job.spider, job=job, by=by))


@pytest.mark.parametrize("case", [case for case in NONSENSE if case.typed is not None])
def test_nonsense_is_told_at_its_box_and_what_was_typed_stays(case: Nonsense, now: datetime) -> None:
    admin = AdminFactory()
    page = page_of(JobFactory(), case.typed or {}, admin)

    if page.is_valid():
        with pytest.raises(Invalid) as excinfo:
            page.save(by=admin, now=now, job=Job.objects.get())
        page.take(excinfo.value)

    assert page.job is not None
    assert list(page.job.errors) == [case.form_field]
    assert page.wrong
    for name, value in (case.typed or {}).items():
        assert page.job[name].value() == value
    if case.form_field not in ("timeout_seconds", "grace_seconds"):
        assert len(page.wrong_sections) == 1


def test_what_is_stored_comes_back_the_same_when_nothing_is_touched(now: datetime) -> None:
    admin = AdminFactory()
    NodeFactory(labels={"zone": "eu"})
    repair = JobFactory()
    job = JobFactory(
        spider=repair.spider,
        repair_job=repair,
        retry={"attempts": 3, "backoff": "list", "delays": [30, 3600], "causes": ["oom"], "never_codes": [2, 3]},
        overlap="allow",
        overlap_max=4,
        total_seconds=7200,
        on_node_lost="wait",
        selector={"zone": "eu"},
    )
    job.pools.add(Pool.objects.create(name="shop", limit=2))
    shown = JobForm(spider=job.spider, job=job, by=admin)
    assert 'value="30s, 1h"' in str(shown["retry_delays"])
    assert 'value="2h"' in str(shown["total_seconds"])
    assert 'value="2, 3"' in str(shown["retry_never_codes"])

    page = page_of(job, {}, admin)
    assert page.is_valid(), page.job and page.job.errors
    page.save(by=admin, now=now, job=job)

    again = Job.objects.get(pk=job.pk)
    assert (again.overlap, again.overlap_max, again.total_seconds, again.on_node_lost) == ("allow", 4, 7200, "wait")
    assert (again.retry["delays"], again.retry["causes"], again.retry["attempts"]) == ([30, 3600], ["oom"], 3)
    assert (again.repair_job, again.selector, again.pools.count()) == (repair, {"zone": "eu"}, 1)


def test_a_number_of_another_choice_may_stand_in_its_box(now: datetime) -> None:
    page = page_of(JobFactory(), {"overlap": "skip", "overlap_max": "7"}, AdminFactory())

    assert page.is_valid()
    page.save(by=AdminFactory(), now=now, job=Job.objects.get())
    assert Job.objects.get().overlap_max is None


def test_only_jobs_one_may_run_are_offered_for_repair(now: datetime) -> None:
    user, spider = UserFactory(), SpiderFactory()
    job, mine, seen, _unseen = JobFactory.create_batch(4, spider=spider)
    grant(user, "developer", job)
    grant(user, "runner", mine)
    grant(user, "viewer", seen)
    grant(user, "runner", JobFactory())

    offered = JobForm(spider=spider, job=job, by=user).fields["repair_job"]

    assert [str(label) for _value, label in offered.choices] == ["none", str(mine)]  # type: ignore[attr-defined]


def test_a_repair_job_that_one_may_not_see_stays_without_its_name(now: datetime) -> None:
    user, repair = UserFactory(), JobFactory(name="hidden")
    job = JobFactory(spider=repair.spider, repair_job=repair)
    grant(user, "developer", job)

    page = page_of(job, {"name": "renamed"}, user)

    assert page.job is not None
    assert "hidden" not in str(page.job["repair_job"])
    assert page.is_valid(), page.job.errors
    page.save(by=user, now=now, job=job)
    assert Job.objects.get(pk=job.pk).repair_job == repair


def test_a_form_without_the_sections_changes_no_policy(now: datetime) -> None:
    job = JobFactory(overlap="allow", retry={"attempts": 3})
    form = JobForm(QueryDict(urlencode(GOOD)), spider=job.spider, job=job)

    assert form.is_valid(), form.errors
    assert not form.changes.keys() & {"overlap", "retry", "pools"}
