"""Limits that hold on all nodes together, fairness, and that nothing in front hides what could start."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import Count

from apps.runs.models import Node, Placement, Pool, Run
from apps.runs.states import State
from tests.apps.runs.queued import MIB, claim, many, queued
from tests.factories import JobFactory, NodeFactory, ProjectFactory, RunFactory, SpiderFactory

# -- limits -----------------------------------------------------------------------------------------------------------


def test_what_is_taken_in_one_claim_counts_at_once(db: None, now: datetime) -> None:
    node, pool = NodeFactory(slots=50), Pool.objects.create(name="p", limit=2)
    project = ProjectFactory(max_running=3)
    spider = SpiderFactory(max_running=1)
    for given in (
        {"pools": [pool.pk]},
        {"job": JobFactory(spider=SpiderFactory(project=project))},
        {"job": JobFactory(spider=spider)},
        {"job": JobFactory(), "job_limit": 2},
    ):
        many(queued(now, **given), 9)
    taken = Run.objects.filter(pk__in=claim(node, now, limit=40))
    assert len(taken) == 2 + 3 + 1 + 2
    assert taken.filter(pools=[pool.pk]).count() == 2
    assert taken.filter(project=project).count() == 3
    assert taken.filter(spider=spider).count() == 1
    assert claim(node, now) == []


def test_a_run_must_pass_all_its_pools(db: None, now: datetime) -> None:
    wide, narrow = (Pool.objects.create(name=name, limit=limit) for name, limit in (("wide", 5), ("narrow", 1)))
    both = queued(now, pools=[wide.pk, narrow.pk], minutes=1)
    queued(now, pools=[narrow.pk, wide.pk])
    free = queued(now, pools=[wide.pk])
    assert claim(NodeFactory(), now) == [both.pk, free.pk]


def test_the_limit_of_the_panel_counts_all_nodes(db: None, now: datetime) -> None:
    Placement.objects.create(max_running=5)
    RunFactory.create_batch(3, state=State.RUNNING, node=NodeFactory())
    many(queued(now), 9)
    node = NodeFactory(slots=10)
    assert len(claim(node, now)) == 2
    assert claim(node, now) == []


def test_a_run_between_two_attempts_holds_its_job_but_not_its_pool(db: None, now: datetime) -> None:
    pool, job = Pool.objects.create(name="p", limit=1), JobFactory()
    RunFactory(state=State.RETRY_WAIT, job=job, pools=[pool.pk])
    queued(now, job=job, job_limit=1, minutes=2)
    other = queued(now, pools=[pool.pk])
    assert claim(NodeFactory(), now) == [other.pk]


def test_a_run_that_comes_back_from_a_retry_is_not_held_up_by_itself(db: None, now: datetime) -> None:
    run = queued(now, job_limit=1, attempt=1)
    assert claim(NodeFactory(), now) == [run.pk]


def test_cpus_are_promised_twice_and_no_more(db: None, now: datetime) -> None:
    node = NodeFactory(slots=4, cpus=2.0)
    RunFactory(state=State.PAUSED, node=node, cpus=2.0)
    first = queued(now, cpus=1.5, minutes=2)
    queued(now, cpus=1.0, minutes=1)
    small = queued(now, cpus=0.5)
    assert claim(node, now) == [first.pk, small.pk]


def test_more_places_set_by_hand_are_each_good_for_a_usual_run(db: None, now: datetime) -> None:
    node = NodeFactory(slots=20, cpus=2.0)
    many(queued(now, cpus=1.0, memory_bytes=64 * MIB), 29)
    assert len(claim(node, now, limit=50)) == 20


def test_ten_runs_of_a_tenth_fill_one_cpu_exactly(db: None, now: datetime) -> None:
    node = NodeFactory(slots=1, cpus=0.5)
    Node.objects.filter(pk=node.pk).update(slots=100, cpus=50)
    RunFactory.create_batch(9, state=State.RUNNING, node=node, cpus=0.1)
    RunFactory(state=State.RUNNING, node=node, cpus=99.0)
    last = queued(now, cpus=0.1)
    assert claim(node, now) == [last.pk]


def test_a_selector_finds_its_node(db: None, now: datetime) -> None:
    eu = queued(now, selector={"zone": "eu"}, minutes=2)
    both = queued(now, selector={"zone": "eu", "browser": "yes"}, minutes=1)
    plain = queued(now)
    assert claim(NodeFactory(labels={"zone": "us", "browser": "yes"}), now, limit=1) == [plain.pk]
    assert claim(NodeFactory(labels={"zone": "eu"}), now) == [eu.pk]
    assert claim(NodeFactory(labels={"zone": "eu", "browser": "yes", "more": "x"}), now) == [both.pk]


def test_in_maintenance_nothing_starts(db: None, now: datetime) -> None:
    run, node = queued(now), NodeFactory()
    placement = Placement.objects.create(maintenance_since=now)
    assert claim(node, now) == []
    placement.maintenance_since = None
    placement.save()
    assert claim(node, now) == [run.pk]


def test_a_node_whose_heart_does_not_beat_takes_nothing(db: None, now: datetime) -> None:
    queued(now)
    assert claim(NodeFactory(heartbeat_at=now - timedelta(seconds=125)), now) == []


# -- order ------------------------------------------------------------------------------------------------------------


def test_projects_take_turns_within_one_step_of_urgency(db: None, now: datetime) -> None:
    busy, quiet = JobFactory(), JobFactory()
    many(queued(now, minutes=8, job=busy), 19)
    many(queued(now, minutes=1, job=quiet), 19)
    node = NodeFactory(slots=40)
    assert _projects(claim(node, now, limit=6)) == {busy.project_id: 3, quiet.project_id: 3}
    RunFactory.create_batch(4, state=State.RUNNING, node=NodeFactory(), job=quiet)
    assert _projects(claim(node, now, limit=6)) == {busy.project_id: 5, quiet.project_id: 1}


def _projects(run_ids: list[int]) -> dict[int, int]:
    return dict(Run.objects.filter(pk__in=run_ids).values_list("project").annotate(count=Count("pk")))


def test_fairness_ends_where_urgency_begins(db: None, now: datetime) -> None:
    busy = JobFactory()
    RunFactory.create_batch(3, state=State.RUNNING, node=NodeFactory(), job=busy)
    waited = queued(now, minutes=11, job=busy)
    fresh = queued(now)
    urgent = queued(now, priority=1, job=busy)
    assert claim(NodeFactory(), now) == [urgent.pk, waited.pk, fresh.pk]


@pytest.mark.parametrize("kind", ["pool", "job", "spider", "project", "selector", "memory", "cpus"])
def test_thousands_in_front_that_cannot_start_hide_nothing(db: None, now: datetime, kind: str) -> None:
    node, job = NodeFactory(slots=1000, memory_bytes=102_000 * MIB), JobFactory()
    given: dict[str, dict[str, Any]] = {
        "pool": {"pools": [Pool.objects.create(name="p", limit=1).pk]},
        "job": {"job_limit": 1},
        "selector": {"selector": {"zone": "eu"}},
        "memory": {"memory_bytes": 100_000 * MIB},
        "cpus": {"cpus": 500.0},
    }
    if kind in ("spider", "project"):
        limited = job.spider if kind == "spider" else job.project
        limited.max_running = 1
        limited.save()
    wanted = given.get(kind, {})
    RunFactory(state=State.RUNNING, node=node, job=job, **wanted)
    # Not so long that the node would be kept free for what is too large beside the others.
    many(queued(now, minutes=9, job=job, **wanted), 4999)
    other_job = JobFactory(spider=job.spider)
    behind = [queued(now, job=JobFactory() if kind in ("spider", "project") else other_job) for _ in range(3)]
    began = time.perf_counter()
    assert claim(node, now, limit=16) == [run.pk for run in behind]
    print(f"{kind}: {1000 * (time.perf_counter() - began):.0f} ms")


def test_what_asks_for_other_things_stands_in_another_line(db: None, now: datetime) -> None:
    first = queued(now)
    for change in (
        {},
        {"cpus": "2"},
        {"memory_bytes": "memory_bytes * 2"},
        {"pools": "ARRAY[1]::bigint[]"},
        {"pools": "ARRAY[2]::bigint[]"},
        {"pools": "ARRAY[1, 2]::bigint[]"},
        {"selector": """'{"a": "b"}'"""},
        {"selector": """'{"b": "a"}'"""},
        {"selector": """'{"a": "b"}'""", "pools": "ARRAY[1]::bigint[]"},
    ):
        many(first, 2, change)
    with connection.cursor() as cursor:
        cursor.execute("SELECT claw_run_shape(spider_id, memory_bytes, cpus, pools, selector) FROM runs_run")
        shapes = {row[0] for row in cursor.fetchall()}
    assert len(shapes) == 9


def test_the_jobs_behind_a_long_front_of_a_busy_one_take_turns_by_age(db: None, now: datetime) -> None:
    spider = SpiderFactory()
    busy = JobFactory(spider=spider)
    RunFactory(state=State.RETRY_WAIT, job=busy)
    many(queued(now, minutes=9, job=busy, job_limit=1), 4999)
    behind = [queued(now, minutes=8 - n, job=JobFactory(spider=spider), job_limit=1) for n in range(5)]
    many(behind[0], 20)
    assert claim(NodeFactory(slots=30), now) == [run.pk for run in behind]


def test_a_job_that_gets_full_in_a_claim_does_not_end_it(db: None, now: datetime) -> None:
    spider = SpiderFactory()
    first = queued(now, minutes=9, job=JobFactory(spider=spider), job_limit=2)
    many(first, 500)
    behind = [queued(now, job=JobFactory(spider=spider), job_limit=1) for _ in range(3)]
    assert claim(NodeFactory(slots=30), now)[2:] == [run.pk for run in behind]


def test_a_job_whose_limit_was_raised_is_not_held_up_by_its_older_runs(db: None, now: datetime) -> None:
    job = JobFactory()
    RunFactory(state=State.RUNNING, node=NodeFactory(), job=job)
    many(queued(now, minutes=9, job=job, job_limit=1), 999)
    raised, free = queued(now, minutes=2, job=job, job_limit=3), queued(now, minutes=1, job=job)
    assert claim(NodeFactory(), now) == [raised.pk, free.pk]


def test_a_queue_of_which_nothing_can_start_costs_little(db: None, now: datetime) -> None:
    node, job = NodeFactory(memory_bytes=1000 * MIB), JobFactory()
    RunFactory(state=State.RUNNING, node=node, memory_bytes=900 * MIB, job=job)
    pool = Pool.objects.create(name="p", limit=1)
    RunFactory(state=State.RUNNING, node=NodeFactory(), pools=[pool.pk])
    # Two hundred kinds of runs, each in each priority.
    many(queued(now, job=job), 5000, {"priority": "1 + n %% 9", "memory_bytes": "(500 + n / 9 %% 100) * 1048576"})
    many(queued(now, job=job, pools=[pool.pk]), 5000, {"priority": "1 + n %% 9", "cpus": "1 + n / 9 %% 100 * 0.01"})
    claim(node, now)
    began = time.perf_counter()
    assert claim(node, now) == []
    took = time.perf_counter() - began
    print(f"nothing of 1 800 kinds: {took * 1000:.0f} ms")
    assert took < 0.5
