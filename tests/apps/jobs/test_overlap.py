"""What a launch does while earlier runs of its job are not over."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from apps.core.actors import SYSTEM
from apps.jobs.models import Job, Overlap
from apps.jobs.services import run_job
from apps.runs import reasons
from apps.runs.models import Run, RunEvent
from apps.runs.states import ACTIVE, State
from tests.factories import JobFactory, RunFactory

pytestmark = pytest.mark.django_db

LAUNCHES = 50


def launch(job: Job, now: datetime, **more: Any) -> Run:
    return run_job(job=job, by=SYSTEM, now=now, trigger="manual", **more)[0]


@pytest.mark.parametrize("state", ACTIVE)
def test_a_job_that_is_active_in_any_way_is_skipped(state: State, now: datetime) -> None:
    earlier = RunFactory(state=state)

    run = launch(earlier.job, now)

    assert (run.state, run.reason, run.detail) == (State.SKIPPED, "overlap_skip", {"run": earlier.pk})
    assert run.finished_at == now
    assert reasons.sentence(run) == f"Skipped: run {earlier.pk} of the same job was still active."
    earlier.refresh_from_db()
    assert earlier.state == state


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED, State.SKIPPED, State.LOST])
def test_a_run_that_is_over_skips_nothing(state: State, now: datetime) -> None:
    run = launch(RunFactory(state=state).job, now)

    assert (run.state, run.job_limit) == (State.QUEUED, 1)


def test_another_job_of_the_spider_skips_nothing(now: datetime) -> None:
    earlier = RunFactory()

    assert launch(JobFactory(spider=earlier.spider), now).state == State.QUEUED


def test_what_a_key_has_started_is_the_answer_again_and_not_skipped(now: datetime) -> None:
    job = JobFactory()

    first = launch(job, now, idempotency_key="k")
    second = launch(job, now, idempotency_key="k")

    assert first == second
    assert second.state == State.QUEUED


def test_a_repeated_key_replaces_nothing(now: datetime) -> None:
    job = JobFactory(overlap=Overlap.REPLACE)
    first = launch(job, now, idempotency_key="k")
    newer = launch(job, now)

    assert launch(job, now, idempotency_key="k") == first
    newer.refresh_from_db()
    assert newer.state == State.QUEUED


def test_a_queue_takes_as_many_as_the_job_says(now: datetime) -> None:
    job = JobFactory(overlap=Overlap.QUEUE, overlap_max=2)
    RunFactory(job=job, state=State.RUNNING)

    states = [launch(job, now).state for _ in range(3)]

    assert states == [State.QUEUED, State.QUEUED, State.SKIPPED]
    skipped = Run.objects.get(state=State.SKIPPED)
    assert skipped.detail == {"waiting": 2, "max": 2}
    assert "2 runs of the job were waiting already" in reasons.sentence(skipped)
    assert set(Run.objects.filter(state=State.QUEUED).values_list("job_limit", flat=True)) == {1}


def test_the_first_of_a_queue_does_not_count_as_waiting(now: datetime) -> None:
    job = JobFactory(overlap=Overlap.QUEUE, overlap_max=1)

    assert [launch(job, now).state for _ in range(3)] == [State.QUEUED, State.QUEUED, State.SKIPPED]


@pytest.mark.parametrize("most", [None, 3])
def test_side_by_side_is_a_limit_for_placement(most: int | None, now: datetime) -> None:
    job = JobFactory(overlap=Overlap.ALLOW, overlap_max=most)

    runs = [launch(job, now) for _ in range(5)]

    assert [(run.state, run.job_limit) for run in runs] == [(State.QUEUED, most)] * 5


def test_a_newer_run_takes_the_place_of_the_earlier_ones(now: datetime) -> None:
    job = JobFactory(overlap=Overlap.REPLACE)
    waiting, running = RunFactory(job=job), RunFactory(job=job, state=State.RUNNING)
    stopping = RunFactory(job=job, state=State.STOPPING, stop_cause="user")

    run = launch(job, now)

    for each in (waiting, running, stopping):
        each.refresh_from_db()
    assert (run.state, run.job_limit) == (State.QUEUED, 1)
    assert (waiting.state, waiting.reason) == (State.CANCELED, "replaced")
    assert reasons.sentence(waiting) == f"Replaced by run {run.pk} of the same job."
    assert (running.state, running.stop_cause) == (State.STOPPING, "replaced")
    assert (stopping.state, stopping.stop_cause) == (State.STOPPING, "user")


def launch_at_once(job: Job, now: datetime) -> list[str]:
    """The states right after each launch; all threads begin together."""
    barrier = Barrier(LAUNCHES)

    def one(_number: int) -> str:
        barrier.wait(30)
        try:
            return launch(job, now).state
        finally:
            connection.close()

    with ThreadPoolExecutor(LAUNCHES) as pool:
        return list(pool.map(one, range(LAUNCHES)))


@pytest.mark.django_db(transaction=True)
def test_of_fifty_launches_at_once_one_run_is_made_and_the_others_are_skipped(now: datetime) -> None:
    job = JobFactory()

    states = launch_at_once(job, now)

    assert (states.count(State.QUEUED), states.count(State.SKIPPED)) == (1, LAUNCHES - 1)
    only = Run.objects.get(state=State.QUEUED)
    assert set(Run.objects.filter(state=State.SKIPPED).values_list("detail__run", flat=True)) == {only.pk}
    assert RunEvent.objects.filter(to_state=State.SKIPPED).count() == LAUNCHES - 1


@pytest.mark.django_db(transaction=True)
def test_of_fifty_launches_at_once_a_queue_takes_its_number(now: datetime) -> None:
    states = launch_at_once(JobFactory(overlap=Overlap.QUEUE, overlap_max=7), now)

    assert (states.count(State.QUEUED), states.count(State.SKIPPED)) == (8, LAUNCHES - 8)


@pytest.mark.django_db(transaction=True)
def test_of_fifty_launches_at_once_the_last_one_takes_the_place(now: datetime) -> None:
    launch_at_once(JobFactory(overlap=Overlap.REPLACE), now)

    assert Run.objects.filter(state=State.QUEUED).count() == 1
    assert Run.objects.filter(state=State.CANCELED, reason="replaced").count() == LAUNCHES - 1


@pytest.mark.django_db(transaction=True)
def test_of_fifty_launches_at_once_all_are_taken_side_by_side(now: datetime) -> None:
    states = launch_at_once(JobFactory(overlap=Overlap.ALLOW, overlap_max=1), now)

    assert states == [State.QUEUED] * LAUNCHES
    assert set(Run.objects.values_list("job_limit", flat=True)) == {1}
