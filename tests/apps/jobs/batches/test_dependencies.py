"""Saying which jobs a job follows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

from apps.accounts.models import User
from apps.accounts.rights import grant
from apps.core.errors import Invalid, PanelError
from apps.jobs.models import Dependency, Job
from apps.jobs.services import update_job
from apps.jobs.services.graph import MOST_UPSTREAMS, set_dependencies
from tests.apps.jobs.batches.chain import after, at_once, jobs_of
from tests.factories import AdminFactory, JobFactory, UserFactory

pytestmark = pytest.mark.django_db


def follow(job: Job, upstreams: Sequence[tuple[Any, Any]], now: datetime, *, join: str = "all", by: Any = None) -> None:
    set_dependencies(job=job, upstreams=upstreams, join=join, by=by or AdminFactory(), now=now)


def refused(job: Job, upstreams: Sequence[tuple[Any, Any]], now: datetime, **more: Any) -> dict[str, list[str]]:
    before = set(Dependency.objects.values_list("pk", "condition"))
    with pytest.raises(Invalid) as caught:
        follow(job, upstreams, now, **more)
    assert set(Dependency.objects.values_list("pk", "condition")) == before
    return caught.value.fields


def edges() -> set[tuple[str, str, str]]:
    return set(Dependency.objects.values_list("upstream__name", "job__name", "condition"))


def test_what_is_saved_replaces_what_was(now: datetime) -> None:
    a, b, c, d = jobs_of("a", "b", "c", "d")
    follow(d, [(a.pk, "success"), (b.pk, "failure")], now)
    kept = Dependency.objects.get(upstream=b).pk

    follow(d, [(b.pk, "always"), (c.pk, "success")], now, join="any")

    assert edges() == {("b", "d", "always"), ("c", "d", "success")}
    assert Dependency.objects.get(upstream=b).pk == kept
    d.refresh_from_db()
    assert (d.join, d.updated_at) == ("any", now)


def test_a_change_is_noted_and_the_same_once_more_is_none(now: datetime) -> None:
    a, b = jobs_of("a", "b")
    admin = AdminFactory()

    for _ in range(2):
        follow(b, [(a.pk, "success")], now, by=admin)

    assert LogEntry.objects.get(user=admin).change_message == f"dependencies: {a.pk} success; all"


def test_each_fault_stands_at_its_row(now: datetime) -> None:
    job, good = jobs_of("job", "good")
    elsewhere = JobFactory()
    wanted = [
        (job.pk, "success"), (good.pk, "success"), (good.pk, "failure"), (elsewhere.pk, "success"), (2**40, "success"),
        ("1", "success"), (True, "success"), (2**70, "success"), (None, "success"),
    ]  # fmt: skip

    said = refused(job, wanted, now, join="most")

    assert said == {
        "upstreams.0": ["A job cannot follow itself."],
        "upstreams.2": ["This job is chosen twice."],
        "upstreams.3": ["Jobs that follow each other belong to the same project."],
        **{f"upstreams.{place}": ["There is no such job."] for place in range(4, 9)},
        "join": ["Choose one of: all, any."],
    }


@pytest.mark.parametrize("condition", ["", "done", None, ["success"]])
def test_an_unknown_condition_is_refused(condition: Any, now: datetime) -> None:
    job, good = jobs_of("job", "good")

    assert refused(job, [(good.pk, condition)], now) == {"upstreams.0": ["Choose one of: success, failure, always."]}


def test_too_many_are_refused(now: datetime) -> None:
    job = JobFactory()

    assert "upstreams" in refused(job, [(n, "success") for n in range(1, MOST_UPSTREAMS + 2)], now)


def test_a_job_that_may_not_be_seen_is_not_there(now: datetime) -> None:
    job, hidden = jobs_of("job", "hidden")
    user: User = UserFactory()
    grant(user, "operator", job)

    assert refused(job, [(hidden.pk, "success")], now, by=user) == {"upstreams.0": ["There is no such job."]}


def test_one_that_was_chosen_before_stays_although_it_may_not_be_seen(now: datetime) -> None:
    job, hidden, seen = jobs_of("job", "hidden", "seen")
    after(job, hidden)
    user: User = UserFactory()
    grant(user, "operator", job)
    grant(user, "viewer", seen)

    follow(job, [(hidden.pk, "success"), (seen.pk, "always")], now, by=user)

    assert edges() == {("hidden", "job", "success"), ("seen", "job", "always")}


@pytest.mark.parametrize("length", [2, 3, 6])
def test_a_circle_is_refused_with_its_way(length: int, now: datetime) -> None:
    jobs = jobs_of(*"abcdef"[:length])
    for before, behind in pairwise(jobs):
        follow(behind, [(before.pk, "success")], now)

    said = refused(jobs[0], [(jobs[-1].pk, "failure")], now)

    path = " → ".join([*"abcdef"[:length], "a"])
    assert said == {"upstreams.0": [f"The jobs would go round in a circle: {path}."]}


def test_a_way_round_over_a_repair_is_a_circle_too(now: datetime) -> None:
    a, b, c = jobs_of("a", "b", "c")
    admin = AdminFactory()
    update_job(job=a, by=admin, now=now, repair_job=b.pk)
    follow(c, [(b.pk, "success")], now)

    assert refused(a, [(c.pk, "success")], now) == {
        "upstreams.0": ["The jobs would go round in a circle: a → b → c → a."]
    }
    with pytest.raises(Invalid) as caught:
        update_job(job=c, by=admin, now=now, repair_job=a.pk)
    assert caught.value.fields == {"repair_job": ["Repairs would go round in a circle: c → a → b → c."]}


def test_a_diamond_is_no_circle(now: datetime) -> None:
    a, b, c, d = jobs_of("a", "b", "c", "d")
    follow(b, [(a.pk, "success")], now)
    follow(c, [(a.pk, "success")], now)
    follow(d, [(b.pk, "success"), (c.pk, "success"), (a.pk, "always")], now)

    assert len(edges()) == 5


def test_what_is_replaced_counts_no_more(now: datetime) -> None:
    a, b = jobs_of("a", "b")
    follow(b, [(a.pk, "success")], now)

    follow(b, [], now)
    follow(a, [(b.pk, "success")], now)

    assert edges() == {("b", "a", "success")}


def test_jobs_in_the_way_that_may_not_be_seen_go_by_their_number(now: datetime) -> None:
    a, hidden, c = jobs_of("a", "hidden", "c")
    after(hidden, a)
    after(c, hidden)
    user: User = UserFactory()
    grant(user, "operator", a)
    grant(user, "viewer", c)

    said = refused(a, [(c.pk, "success")], now, by=user)

    assert said["upstreams.0"] == [f"The jobs would go round in a circle: a → #{hidden.pk} → c → a."]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("half", ["dependency", "repair"])
def test_two_who_save_half_a_circle_each_at_once(half: str, now: datetime) -> None:
    a, b = jobs_of("a", "b")
    admin = AdminFactory()

    def first() -> None:
        follow(a, [(b.pk, "success")], now, by=admin)

    def second() -> None:
        if half == "repair":
            update_job(job=a, by=admin, now=now, repair_job=b.pk)
        else:
            follow(b, [(a.pk, "success")], now, by=admin)

    refusals = at_once(first, second)

    assert len(refusals) == 1
    assert isinstance(refusals[0], PanelError)
    assert "circle" in str(refusals[0].fields)
