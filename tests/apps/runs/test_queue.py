"""Which run starts next, and that a node never takes more than it has."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.models import Count, Sum

from apps.runs import queue
from apps.runs.models import Attempt, Node, Run
from apps.runs.states import PLACED, State
from tests.factories import JobFactory, NodeFactory, RunFactory

MIB = 1024 * 1024
HOME = Path("/nowhere/runs")


def claim(node: Node, now: datetime, limit: int = 10, worker: str = "w") -> list[int]:
    claimed = queue.claim(node=node, worker=worker, runs_home=HOME, now=now, limit=limit)
    return [run.run_id for run in claimed]


def queued(now: datetime, minutes: float = 0, **given: Any) -> Run:
    return RunFactory(state=State.QUEUED, queued_at=now - timedelta(minutes=minutes), **given)


def test_a_claim_gives_token_lease_attempt_and_folder(db: None, now: datetime) -> None:
    node = NodeFactory()
    run = queued(now)
    claimed = queue.claim(node=node, worker="w1", runs_home=HOME, now=now, limit=1)
    run.refresh_from_db()
    attempt = Attempt.objects.get(run=run)
    assert claimed == [queue.Claimed(run.pk, 1, 1, HOME / f"{run.pk}-1")]
    assert (run.state, run.node, run.worker, run.attempt, run.token) == ("starting", node, "w1", 1, 1)
    assert run.lease_until is not None
    assert (attempt.number, attempt.run_dir, attempt.executor) == (1, str(HOME / f"{run.pk}-1"), "process")


def test_the_more_urgent_run_is_first_and_waiting_makes_urgent(db: None, now: datetime) -> None:
    node = NodeFactory(slots=10)
    plain = queued(now, priority=5)
    urgent = queued(now, priority=1)
    patient = queued(now, priority=8, minutes=75)
    first_come = queued(now, priority=5, minutes=1)
    assert claim(node, now) == [patient.pk, urgent.pk, first_come.pk, plain.pk]


def test_places_and_memory_are_counted_over_what_runs(db: None, now: datetime) -> None:
    node = NodeFactory(slots=3, memory_bytes=1024 * MIB)
    RunFactory(state=State.STOPPING, node=node, memory_bytes=400 * MIB)
    RunFactory(state=State.SUCCEEDED, node=node, memory_bytes=1024 * MIB)
    large = queued(now, memory_bytes=700 * MIB, minutes=2)
    small = [queued(now, memory_bytes=100 * MIB, minutes=1) for _ in range(3)]
    assert claim(node, now) == [run.pk for run in small[:2]]
    assert Run.objects.get(pk=large.pk).state == State.QUEUED


def test_a_large_run_that_has_waited_long_is_not_overtaken_for_ever(db: None, now: datetime) -> None:
    node = NodeFactory(slots=3, memory_bytes=1024 * MIB)
    busy = RunFactory(state=State.RUNNING, node=node, memory_bytes=512 * MIB)
    large = queued(now, memory_bytes=900 * MIB, minutes=20)
    queued(now, memory_bytes=100 * MIB)
    assert claim(node, now) == []
    Run.objects.filter(pk=busy.pk).update(state=State.SUCCEEDED)
    assert claim(node, now)[0] == large.pk


@pytest.mark.parametrize("given", [{"trouble": "The disk is full."}, {"cordoned_at": datetime.now(UTC)}])
def test_a_node_in_trouble_or_closed_takes_nothing(db: None, now: datetime, given: dict[str, Any]) -> None:
    queued(now)
    assert claim(NodeFactory(**given), now) == []


def test_a_run_that_cannot_be_started_does_not_block_those_behind_it(db: None, now: datetime) -> None:
    node = NodeFactory()
    broken = queued(now, minutes=5)
    Attempt.objects.create(run=broken, number=1, node=node, executor="x", run_dir="/x", claimed_at=now)
    behind = [queued(now) for _ in range(2)]
    assert claim(node, now) == [run.pk for run in behind]
    broken.refresh_from_db()
    assert (broken.state, broken.reason) == ("failed", "create_failed")


def test_a_database_in_trouble_fails_no_run(db: None, now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_fields: Any) -> None:
        raise OperationalError("could not extend file: No space left on device")

    node, run = NodeFactory(), queued(now)
    with monkeypatch.context() as patch:
        patch.setattr(Attempt.objects, "create", full)
        with pytest.raises(OperationalError):
            claim(node, now)
    run.refresh_from_db()
    assert (run.state, run.attempt) == ("queued", 0)
    assert claim(node, now) == [run.pk]


def test_hopeless_runs_are_refused_by_the_sweep_too(db: None, now: datetime) -> None:
    run = queued(now, memory_bytes=4096 * MIB)
    NodeFactory(memory_bytes=1024 * MIB, heartbeat_at=now)
    assert queue.refuse_unplaceable(now=now) == 1
    run.refresh_from_db()
    assert (run.state, run.reason) == ("failed", "unplaceable")


@pytest.mark.django_db(transaction=True)
def test_eight_claimers_at_once_never_take_more_than_there_is(now: datetime) -> None:
    nodes = [
        NodeFactory(slots=5, memory_bytes=2000 * MIB),
        NodeFactory(slots=20, memory_bytes=1000 * MIB),
    ]
    job = JobFactory()
    for number in range(60):
        queued(now, job=job, memory_bytes=(50 + 10 * (number % 9)) * MIB)

    def take(index: int) -> list[int]:
        taken: list[int] = []
        try:
            for _ in range(6):
                taken += claim(nodes[index % 2], now, limit=3, worker=f"w{index}")
        finally:
            connection.close()
        return taken

    with ThreadPoolExecutor(8) as pool:
        taken = [run_id for claimed in pool.map(take, range(8)) for run_id in claimed]
    assert len(taken) == len(set(taken)) > 10
    for node in nodes:
        used = Run.objects.filter(node=node, state__in=PLACED).aggregate(count=Count("pk"), memory=Sum("memory_bytes"))
        assert used["count"] <= node.slots
        assert used["memory"] <= node.memory_bytes
    assert set(Run.objects.filter(pk__in=taken).values_list("token", flat=True)) == {1}


def _fill_queue(like: Run, count: int) -> None:
    columns = [field.column for field in Run._meta.concrete_fields if field.column not in ("id", "request_id")]
    chosen = ", ".join(columns)
    values = chosen.replace("priority", "1 + n %% 9").replace("queued_at", "queued_at - n * interval '1 second'")
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO runs_run ({chosen}, request_id) SELECT {values}, gen_random_uuid()"  # noqa: S608
            " FROM runs_run, generate_series(1, %s) n WHERE id = %s",
            [count, like.pk],
        )
        cursor.execute("ANALYZE runs_run")


def _time_claims(node: Node, now: datetime) -> float:
    times = []
    for _ in range(40):
        began = time.perf_counter()
        assert len(claim(node, now, limit=1)) == 1
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def test_a_claim_is_as_quick_from_a_long_queue_as_from_a_short_one(db: None, now: datetime) -> None:
    node = NodeFactory(slots=1000, memory_bytes=1 << 50)
    first = queued(now)
    _fill_queue(first, 100)
    short = _time_claims(node, now)
    _fill_queue(queued(now), 10_000)
    long = _time_claims(node, now)
    print(f"claim: median {short * 1000:.1f} ms from 100, {long * 1000:.1f} ms from 10 000")
    assert long < 2.5 * short + 0.002
