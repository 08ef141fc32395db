"""Why a run waits, in one sentence with names and numbers."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apps.runs.models import Node, Placement, Pool, Run
from apps.runs.selectors.waiting import why_they_wait, why_waiting
from apps.runs.states import State
from tests.factories import JobFactory, NodeFactory, ProjectFactory, RunFactory, SpiderFactory

MIB = 1024 * 1024


def node(now: datetime, name: str = "a", **given: Any) -> Node:
    return NodeFactory(name=name, heartbeat_at=now, **given)


def clock(at: datetime) -> str:
    return timezone.localtime(at).strftime("%Y-%m-%d %H:%M")


def test_memory_is_named_with_the_node(db: None, now: datetime) -> None:
    RunFactory(state=State.RUNNING, node=node(now, memory_bytes=1000 * MIB), memory_bytes=800 * MIB)
    assert why_waiting(RunFactory(), now) == "It needs 512 MB of memory, node a has 200 MB free."
    RunFactory(state=State.RUNNING, node=node(now, "b", memory_bytes=1000 * MIB), memory_bytes=700 * MIB)
    assert why_waiting(RunFactory(), now) == "It needs 512 MB of memory; of 2 nodes b has the most free: 300 MB."


def test_cpus_are_named_with_the_node(db: None, now: datetime) -> None:
    RunFactory(state=State.RUNNING, node=node(now, cpus=2.0, slots=4), cpus=2.5)
    assert why_waiting(RunFactory(cpus=1.75), now) == "It needs 1.75 CPUs, node a has 1.5 free."
    RunFactory(state=State.RUNNING, node=node(now, "b", cpus=2.0, slots=4), cpus=3)
    assert why_waiting(RunFactory(cpus=1.75), now) == "It needs 1.75 CPUs; of 2 nodes a has the most free: 1.5."


def test_places_are_named_with_the_node(db: None, now: datetime) -> None:
    RunFactory(state=State.PAUSED, node=node(now, slots=1))
    assert why_waiting(RunFactory(), now) == "The one place of node a is taken."
    RunFactory.create_batch(2, state=State.RUNNING, node=node(now, "b", slots=2))
    assert why_waiting(RunFactory(), now) == "All 3 places of the 2 nodes that could run it are taken."
    assert why_waiting(RunFactory(memory_bytes=9000 * MIB), now) == "No node is large enough for it."


@pytest.mark.parametrize(
    ("state", "doing"),
    [
        (State.RUNNING, "run %d is running"),
        (State.STARTING, "run %d is starting"),
        (State.PAUSED, "run %d is paused"),
        (State.STOPPING, "run %d is being stopped"),
        (State.RETRY_WAIT, "run %d waits for its next attempt"),
    ],
)
def test_the_run_that_holds_the_job_is_named(db: None, now: datetime, state: State, doing: str) -> None:
    job = JobFactory(name="books")
    other = RunFactory(job=job, state=state, node=node(now))
    said = why_waiting(RunFactory(job=job, job_limit=1), now)
    assert said == f"Job books allows one run at once and {doing % other.pk}."


def test_a_job_that_allows_several_says_how_many(db: None, now: datetime) -> None:
    job, own = JobFactory(name="books"), node(now)
    RunFactory.create_batch(3, job=job, state=State.RUNNING, node=own)
    said = why_waiting(RunFactory(job=job, job_limit=3), now)
    assert said == "Job books allows 3 runs at once and 3 are under way."
    assert why_waiting(RunFactory(job=job, job_limit=4), now) == ""


def test_a_full_pool_is_named(db: None, now: datetime) -> None:
    pool, own = Pool.objects.create(name="shop.example", limit=3), node(now)
    RunFactory.create_batch(3, state=State.RUNNING, node=own, pools=[pool.pk])
    waiting = RunFactory(pools=[pool.pk])
    assert why_waiting(waiting, now) == "Pool shop.example is full: 3 of 3."
    pool.delete()
    assert why_waiting(waiting, now) == ""


def test_limits_of_spider_project_and_panel_are_named(db: None, now: datetime) -> None:
    spider = SpiderFactory(name="books", project=ProjectFactory(slug="shop"))
    job, own = JobFactory(spider=spider), node(now)
    RunFactory.create_batch(2, job=job, state=State.RUNNING, node=own)
    waiting = RunFactory(job=job)
    Placement.objects.create(max_running=2)
    assert why_waiting(waiting, now) == "The panel is at its limit: 2 of 2 runs."
    spider.project.max_running = 2
    spider.project.save()
    assert why_waiting(waiting, now) == "Project shop is at its limit: 2 of 2 runs."
    spider.max_running = 1
    spider.save()
    assert why_waiting(waiting, now) == "Spider books is at its limit: 2 of 1 runs."


def test_maintenance_is_said_before_all_else(db: None, now: datetime) -> None:
    placement = Placement.objects.create(maintenance_since=now, maintenance_by="anna", maintenance_why="new disk")
    said = f"Nothing new starts: maintenance since {clock(now)}"
    assert why_waiting(RunFactory(), now) == f"{said} by anna (new disk)."
    placement.maintenance_why = ""
    placement.save()
    assert why_waiting(RunFactory(), now) == f"{said}."


def test_a_node_that_takes_nothing_says_why(db: None, now: datetime) -> None:
    waiting, own = RunFactory(), node(now, cordoned_at=now, trouble="The disk is full.")
    assert why_waiting(waiting, now) == f"Node a has been closed for new runs since {clock(now)}."
    own.drain_until = now + timedelta(hours=1)
    own.save()
    assert why_waiting(waiting, now) == f"Node a is being drained until {clock(own.drain_until)}."
    own.cordoned_at = own.drain_until = None
    own.save()
    assert why_waiting(waiting, now) == "Node a starts nothing now: The disk is full."


def test_a_silent_node_that_could_take_it_is_named(db: None, now: datetime) -> None:
    long_ago = now - timedelta(minutes=3)
    NodeFactory(name="large", heartbeat_at=long_ago, memory_bytes=9000 * MIB)
    waiting = RunFactory(memory_bytes=8500 * MIB)
    assert why_waiting(waiting, now) == "No worker is running."
    node(now, "small")
    assert why_waiting(waiting, now) == f"Node large has not been heard of since {clock(long_ago)}."


def test_labels_are_named(db: None, now: datetime) -> None:
    node(now, "us", labels={"zone": "us"})
    waiting = RunFactory(selector={"zone": "eu", "browser": "yes"})
    assert why_waiting(waiting, now) == "No node has the labels browser=yes, zone=eu."
    eu = node(now, "eu", labels={"zone": "eu", "browser": "yes", "more": "x"}, slots=1)
    assert why_waiting(waiting, now) == ""
    RunFactory(state=State.RUNNING, node=eu)
    said = "The one place of node eu is taken. Only nodes with the labels browser=yes, zone=eu count."
    assert why_waiting(waiting, now) == said


def test_a_node_kept_free_for_a_large_run_names_it(db: None, now: datetime) -> None:
    RunFactory(state=State.RUNNING, node=node(now, memory_bytes=1000 * MIB), memory_bytes=300 * MIB)
    large = RunFactory(memory_bytes=900 * MIB, queued_at=now - timedelta(minutes=11))
    said = f"Node a is kept free for run {large.pk}, which needs 900 MB of memory and has waited longer."
    assert why_waiting(RunFactory(queued_at=now), now) == said
    assert why_waiting(RunFactory(queued_at=now, priority=1), now) == ""
    assert why_waiting(large, now) == "It needs 900 MB of memory, node a has 700 MB free."


def test_between_two_attempts_the_reason_and_the_time_are_said(db: None, now: datetime) -> None:
    given = {"reason": "exit_nonzero", "detail": {"exit_code": 3}, "attempt": 1}
    run = RunFactory(state=State.RETRY_WAIT, retry_at=now + timedelta(seconds=90), **given)
    assert why_waiting(run, now) == "It ended with exit code 3. Attempt 2 is due in 90 seconds."
    run.retry_at = now
    assert why_waiting(run, now) == "It ended with exit code 3. Attempt 2 is due now."


def test_only_runs_that_wait_say_something(db: None, now: datetime) -> None:
    node(now)
    assert why_waiting(RunFactory(state=State.WAITING), now) == "It is not in the queue yet."
    for state in set(State) - {State.WAITING, State.RETRY_WAIT}:
        assert why_waiting(RunFactory(state=state), now) == ""


def test_a_list_of_runs_costs_as_many_queries_as_one(
    db: None, now: datetime, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    pool, own = Pool.objects.create(name="p", limit=1), node(now, slots=2)
    job = JobFactory()
    RunFactory(state=State.RUNNING, node=own, job=job, pools=[pool.pk])
    for _ in range(20):
        RunFactory(job_limit=1, job=job)
        RunFactory(pools=[pool.pk])
        RunFactory(memory_bytes=9000 * MIB)
    waiting = list(Run.objects.filter(state=State.QUEUED).select_related("project", "spider"))
    with django_assert_max_num_queries(7):
        said = why_they_wait(waiting, now)
    assert len(set(said.values())) == 3
