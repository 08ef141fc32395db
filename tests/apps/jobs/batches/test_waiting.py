"""Why a run of a batch waits."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from apps.runs.models import Batch, Run
from apps.runs.selectors.waiting import why_they_wait, why_waiting
from tests.apps.jobs.batches.chain import after, end, jobs_of, run_of, start
from tests.factories import RunFactory

pytestmark = pytest.mark.django_db


def test_it_waits_for_the_jobs_it_follows(now: datetime) -> None:
    a, b, c = jobs_of("a", "b", "c")
    after(b, a)
    after(c, a, b)
    batch = start(a, now)
    first, second = run_of(batch, a), run_of(batch, b)

    assert why_waiting(run_of(batch, b), now) == f"It waits for job a (run {first.pk} is queued)."
    expected = f"It waits for job a (run {first.pk} is queued), job b (run {second.pk} waits itself)."
    assert why_waiting(run_of(batch, c), now) == expected
    end(batch, a, "succeeded", now)
    end(batch, b, "retry_wait", now)
    expected = f"It waits for job b (run {second.pk} waits for its next attempt)."
    assert why_waiting(run_of(batch, c), now) == expected


def test_it_waits_for_one_of_them(now: datetime) -> None:
    a, *middle, last = jobs_of("a", "b", "c", "d", "e", "f", "last")
    after(last, *middle, join="any")
    for job in middle:
        after(job, a)
    batch = start(a, now)

    runs = [run_of(batch, job).pk for job in middle]
    named = ", ".join(f"job {job.name} (run {pk} waits itself)" for job, pk in zip(middle[:3], runs[:3], strict=True))
    assert why_waiting(run_of(batch, last), now) == f"It waits for one of: {named}, 2 more jobs."


def test_a_run_of_a_group_waits_for_its_turn(now: datetime) -> None:
    batch = Batch.objects.create(
        project=RunFactory().project, kind="inputs", trigger="inputs", actor="x", created_at=now, concurrency=2
    )
    run = RunFactory(batch=batch, batch_key="1", state="waiting", apart=True)

    expected = f"It waits for its turn: batch {batch.pk} lets 2 runs go at once."
    assert why_waiting(run, now) == expected


def test_many_cost_as_many_queries_as_one(now: datetime, django_assert_num_queries: Any) -> None:
    a, b, c = jobs_of("a", "b", "c", overlap="allow")
    after(b, a)
    after(c, b)
    for _ in range(5):
        start(a, now)
    waiting = list(Run.objects.filter(state="waiting"))

    with django_assert_num_queries(3):
        assert len(why_they_wait(waiting, now)) == 10
