"""Runs that no node can ever take."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from apps.runs import queue, reasons
from apps.runs.models import Run
from apps.runs.states import State
from tests.apps.runs.queued import MIB, many, queued
from tests.factories import NodeFactory


def refused(run: Run, now: datetime) -> str:
    queue.refuse_unplaceable(now=now)
    run.refresh_from_db()
    if run.state == State.QUEUED:
        return ""
    assert (run.state, run.reason) == ("failed", "unplaceable")
    return reasons.sentence(run)


def test_each_way_to_be_too_large_for_every_node_is_named(db: None, now: datetime) -> None:
    NodeFactory(memory_bytes=1024 * MIB, cpus=8.0)
    NodeFactory(memory_bytes=2048 * MIB, cpus=2.0, labels={"zone": "eu"})
    for given, said in (
        ({"memory_bytes": 4096 * MIB}, "it needs 4096 MB of memory, the largest node has 2048 MB."),
        ({"cpus": 9.5}, "it needs 9.5 CPUs, the largest node has 8."),
        (
            {"memory_bytes": 2048 * MIB, "cpus": 4.0},
            "none has both the 2048 MB of memory and the 4 CPUs it needs; the largest have 2048 MB and 8 CPUs.",
        ),
        ({"selector": {"zone": "us", "gpu": "yes"}}, "none has the labels gpu=yes, zone=us."),
        (
            {"selector": {"zone": "eu"}, "cpus": 3.0},
            "it needs 3 CPUs, the largest node has 2. Only nodes with the labels zone=eu count.",
        ),
    ):
        assert refused(queued(now, **given), now) == f"No node can run it: {said}"
    assert refused(queued(now, selector={"zone": "eu"}, memory_bytes=2048 * MIB), now) == ""


@pytest.mark.parametrize(
    "given", [{"cordoned_at": "now"}, {"heartbeat_at": "long ago"}, {"trouble": "The disk is full."}]
)
def test_a_node_that_only_takes_nothing_for_now_keeps_the_run_waiting(
    db: None, now: datetime, given: dict[str, Any]
) -> None:
    times = {"now": now, "long ago": now - timedelta(days=1)}
    NodeFactory(memory_bytes=1024 * MIB)
    large = NodeFactory(memory_bytes=4096 * MIB, **{name: times.get(value, value) for name, value in given.items()})
    run = queued(now, memory_bytes=2048 * MIB)
    assert refused(run, now) == ""
    large.delete()
    assert "needs 2048 MB" in refused(run, now)


def test_nothing_is_refused_while_nothing_is_known(db: None, now: datetime) -> None:
    run = queued(now, memory_bytes=1 << 50, selector={"zone": "eu"})
    assert refused(run, now) == ""
    # Its engine has not said yet how much there is.
    NodeFactory(memory_bytes=0, labels={"zone": "eu"})
    assert refused(run, now) == ""


def test_all_that_is_hopeless_of_a_long_queue_is_refused_in_steps(db: None, now: datetime) -> None:
    NodeFactory(memory_bytes=1024 * MIB)
    many(queued(now, memory_bytes=2048 * MIB), 149)
    good = queued(now)
    assert [queue.refuse_unplaceable(now=now) for _ in range(3)] == [100, 50, 0]
    assert list(Run.objects.filter(state=State.QUEUED)) == [good]
