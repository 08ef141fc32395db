"""Two machines with a Docker Engine and a worker each: work spreads, one dies, nothing is lost or doubled."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings

from apps.runs import sweeps
from apps.runs.models import Attempt, Item, Node, Run
from apps.runs.policies import FailedItems, RetryPolicy
from apps.runs.states import TERMINAL, State
from tests.apps.runs.agent.rig import items, lines
from tests.docker.machines import Machine, machine
from tests.journeys.worker import SLOW, Bench, bench

CAN = os.geteuid() == 0 and all(shutil.which(program) for program in ("dockerd", "nsenter", "ip"))
pytestmark = [
    pytest.mark.docker,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(600),
    pytest.mark.skipif(not CAN, reason="needs root, dockerd, nsenter and ip for engines of its own"),
]
SILENT = timedelta(seconds=20)  # 120 s in the product
COUNT = 1200
ONCE_MORE = RetryPolicy(attempts=1, infrastructure=3, items=FailedItems.REPLACE)


@pytest.fixture(scope="module")
def machines() -> Iterator[tuple[Machine, Machine]]:
    image = os.environ.get("CLAWPANEL_RUNNER_BASE") or "python:3.12-slim"
    with machine("one", 1, image) as one, machine("two", 2, image, tls=True) as two:
        yield one, two


@pytest.fixture
def queue(machines: tuple[Machine, Machine]) -> Iterator[Bench]:
    """Where runs are asked for; the workers are killed before the database is emptied."""
    with bench("process") as made:
        yield made
        for each in machines:
            each.kill_worker()
            for name in each.containers():
                each.engine.docker("rm", "-f", name)


def until(what: Callable[[], object], seconds: float, *machines: Machine) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        told = "\n".join(f"--- {each.name}\n{each.log[-3000:]}" for each in machines)
        runs = list(Run.objects.values_list("pk", "state", "reason", "attempt", "node__name", "lines"))
        assert time.monotonic() < deadline, f"{runs}\n{told}"
        time.sleep(0.2)


def states(*runs: Run) -> set[str]:
    return set(Run.objects.filter(pk__in=[run.pk for run in runs]).values_list("state", flat=True))


def is_ready(each: Machine) -> bool:
    return Node.objects.filter(name=each.name, trouble="", heartbeat_at__gt=datetime.now(UTC) - SILENT).exists()


def name_of(run: Run, attempt: int) -> str:
    return f"claw-{settings.CLAWPANEL_INSTALL}-r{run.pk}-a{attempt}"


def sweep() -> None:
    """As beat has it done, but for the patience."""
    sweeps.give_up_on_silent_nodes(now=datetime.now(UTC), silent=SILENT, wait=lambda _seconds: time.sleep(1))
    sweeps.requeue_due(now=datetime.now(UTC))


def assert_whole(run: Run, *, attempt: int) -> None:
    """Every line and item of that attempt once and in order; of no other attempt is an item left."""
    run.refresh_from_db()
    assert (run.state, run.attempt) == (State.SUCCEEDED, attempt)
    said = lines(run)
    assert said[-COUNT:] == [f"line {number}" for number in range(1, COUNT + 1)]
    kept = Item.objects.filter(run_id=run.pk, attempt=attempt).order_by("seq").values_list("data", flat=True)
    assert list(kept) == [{"n": number} for number in range(1, COUNT // 10 + 1)]


def test_runs_spread_over_both_machines(machines: tuple[Machine, Machine], queue: Bench) -> None:
    one, two = machines
    for each in machines:
        each.start_worker()
    until(lambda: is_ready(one) and is_ready(two), 180, one, two)
    runs = [queue.request(SLOW, "100", "25", "10", "0") for _ in range(8)]
    until(lambda: states(*runs) <= set(TERMINAL), 120, one, two)
    assert states(*runs) == {State.SUCCEEDED}
    nodes = list(Run.objects.filter(pk__in=[run.pk for run in runs]).values_list("node__name", flat=True))
    assert sorted(nodes) == ["one"] * 4 + ["two"] * 4, "eight runs, four slots on each"
    for run in runs:
        assert lines(run) == [f"line {number}" for number in range(1, 101)]
        assert items(run) == [{"n": number} for number in range(1, 11)]


def test_what_ran_on_a_machine_that_dies_is_run_again_on_the_other_or_waits(
    machines: tuple[Machine, Machine], queue: Bench
) -> None:
    one, two = machines
    two.start_worker()
    until(lambda: is_ready(two), 180, two)
    moves = [queue.request(SLOW, str(COUNT), "20", "10", "0", retry=ONCE_MORE) for _ in range(2)]
    waits = queue.request(SLOW, str(COUNT), "20", "10", "0", on_node_lost="wait")
    until(lambda: not Run.objects.filter(lines__lt=40).exists() and states(*moves, waits) == {State.RUNNING}, 90, two)
    one.start_worker()
    until(lambda: is_ready(one), 180, one)

    two.kill()
    until(lambda: sweep() or Run.objects.filter(attempt=2, state=State.RUNNING).count() == 2, 120, one, two)
    for run in moves:
        run.refresh_from_db()
        assert run.node is not None
        assert run.node.name == "one"
        first = Attempt.objects.get(run=run, number=1)
        assert (first.reason, first.infrastructure, first.node.name) == ("node_lost", True, "two")
    waits.refresh_from_db()
    assert (waits.state, waits.attempt, waits.node.name) == (State.RUNNING, 1, "two")

    two.come_back()
    leftovers = {name_of(run, 1) for run in moves}
    assert leftovers < two.containers(), "they went on without engine and worker"
    until(lambda: not leftovers & two.containers(), 90, two)
    assert name_of(waits, 1) in two.containers() or states(waits) == {State.SUCCEEDED}

    until(lambda: sweep() or states(*moves, waits) <= set(TERMINAL), 150, one, two)
    for run in moves:
        assert_whole(run, attempt=2)
        assert run.items_discarded > 0
        assert list(run.events.filter(reason="node_lost").values_list("kind", flat=True))
    assert_whole(waits, attempt=1)
    assert waits.token > 1, "the worker that came back adopted it"
    until(lambda: not (two.containers() | one.containers()), 60, one, two)
    until(lambda: not (two.folders() | one.folders()), 90, one, two)
