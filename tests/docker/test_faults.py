"""The engine itself is restarted, dies or hangs while runs go on."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from apps.runs import services
from apps.runs.models import Attempt, Node, Run, RunEvent
from apps.runs.policies import RetryPolicy
from apps.runs.states import TERMINAL
from tests.apps.runs.agent.rig import items, lines
from tests.docker.machines import Machine, machine
from tests.journeys.worker import SLOW, TESTER, Bench, bench

CAN = os.geteuid() == 0 and all(shutil.which(program) for program in ("dockerd", "nsenter", "ip"))
pytestmark = [
    pytest.mark.docker,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(600),
    pytest.mark.skipif(not CAN, reason="needs root, dockerd, nsenter and ip for an engine of its own"),
]
COUNT = 600
LIVE_RESTORE = "--live-restore"
ONE_ATTEMPT = RetryPolicy(infrastructure=0)


@pytest.fixture(scope="module")
def own() -> Iterator[Machine]:
    with machine("faulty", 7, os.environ.get("CLAWPANEL_RUNNER_BASE") or "python:3.12-slim") as made:
        yield made


@pytest.fixture
def queue(own: Machine) -> Iterator[Bench]:
    with bench("process") as made:
        own.start_worker()
        yield made
        own.kill_worker()
        if not own.engine.answers():
            own.engine.start()
        for name in own.containers():
            own.engine.docker("rm", "-f", name)


def until(own: Machine, run: Run, what: Callable[[Run], object], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while True:
        run.refresh_from_db()
        if what(run):
            return
        assert time.monotonic() < deadline, f"run is {run.state} {run.reason} {run.detail}\n{own.log[-4000:]}"
        time.sleep(0.2)


def running(own: Machine, queue: Bench, **given: object) -> Run:
    run = queue.request(SLOW, str(COUNT), "20", "10", "0", **given)
    until(own, run, lambda run: run.lines > 20, 240)
    return run


def is_over(run: Run) -> bool:
    return run.state in TERMINAL


def restart(own: Machine, how: signal.Signals, *, live_restore: bool) -> None:
    plain = tuple(option for option in own.engine.options if option != LIVE_RESTORE)
    assert own.engine.process is not None
    own.engine.process.send_signal(how)
    own.engine.process.wait(60)
    own.engine.options = (*plain, LIVE_RESTORE) if live_restore else plain
    assert own.engine.start(), own.engine.last_words()


def test_with_live_restore_a_restart_of_the_engine_is_not_noticed(own: Machine, queue: Bench) -> None:
    run = running(own, queue)
    restart(own, signal.SIGKILL, live_restore=True)
    until(own, run, is_over)
    assert (run.state, run.reason, run.attempt, run.token) == ("succeeded", "", 1, 1), own.log[-4000:]
    assert lines(run) == [f"line {number}" for number in range(1, COUNT + 1)]
    assert items(run) == [{"n": number} for number in range(1, COUNT // 10 + 1)]


@pytest.mark.parametrize("worker_lives", [True, False])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_without_live_restore_the_engine_is_the_reason_and_the_run_is_tried_again(
    own: Machine, queue: Bench, how: signal.Signals, worker_lives: bool
) -> None:
    restart(own, signal.SIGTERM, live_restore=False)
    run = running(own, queue)
    if not worker_lives:
        own.kill_worker()
    restart(own, how, live_restore=False)
    if not worker_lives:
        own.start_worker()
    until(own, run, lambda run: run.attempt == 2 and run.state == "running")
    first = Attempt.objects.get(run=run, number=1)
    assert (first.reason, first.infrastructure) == ("engine_restarted", True), own.log[-4000:]
    services.request_kill(run=run, by=TESTER, now=datetime.now(UTC))
    until(own, run, is_over)


def test_a_kill_by_hand_is_not_the_engines_doing(own: Machine, queue: Bench) -> None:
    run = running(own, queue, retry=ONE_ATTEMPT)
    (name,) = own.containers()
    own.engine.docker("kill", name)
    until(own, run, is_over)
    assert (run.state, run.reason, run.exit_code) == ("failed", "killed", 137)


def test_an_engine_that_hangs_is_trouble_of_the_node_and_a_stop_waits_for_it(own: Machine, queue: Bench) -> None:
    run = running(own, queue)
    assert own.engine.process is not None
    own.engine.process.send_signal(signal.SIGSTOP)
    try:
        until(own, run, lambda _run: "does not answer" in Node.objects.get(name="faulty").trouble, 60)
        run.refresh_from_db()
        seen = run.lines
        assert run.state == "running"
        until(own, run, lambda run: run.lines > seen or run.lines == COUNT, 30)  # its output comes by files
        services.request_stop(run=run, by=TESTER, now=datetime.now(UTC))
        time.sleep(15)  # longer than the grace and than any call waits
        run.refresh_from_db()
        assert run.state == "stopping"
    finally:
        own.engine.process.send_signal(signal.SIGCONT)
    until(own, run, is_over, 60)
    assert (run.state, run.reason) == ("canceled", "stopped_by_user")
    until(own, run, lambda _run: not Node.objects.get(name="faulty").trouble, 60)
    assert not RunEvent.objects.filter(run=run, kind="fenced").exists()


def test_a_worker_leaves_in_time_although_its_engine_hangs(own: Machine, queue: Bench) -> None:
    run = running(own, queue)
    assert own.engine.process is not None
    own.engine.process.send_signal(signal.SIGSTOP)
    try:
        until(own, run, lambda _run: "does not answer" in Node.objects.get(name="faulty").trouble, 60)
        assert own.worker is not None
        asked = time.monotonic()
        own.worker.send_signal(signal.SIGTERM)
        own.worker.wait(30)
        assert time.monotonic() - asked < 10
    finally:
        own.engine.process.send_signal(signal.SIGCONT)
    own.start_worker()
    until(own, run, lambda run: run.token == 2)
    services.request_kill(run=run, by=TESTER, now=datetime.now(UTC))
    until(own, run, is_over)
