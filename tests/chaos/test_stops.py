"""Stop is true in every state, with and without a worker, and against the natural end."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import docker
import pytest
from django.conf import settings
from django.db import connection

from apps.runs.models import Run, RunEvent
from apps.runs.policies import RetryPolicy
from apps.runs.services import RunFinished, request_kill, request_pause, request_stop
from apps.runs.states import ACTIVE, TERMINAL, State
from tests.apps.runs.agent.rig import lines
from tests.chaos.checkers import terminal_once
from tests.chaos.evidence import Event, Evidence, RunRow
from tests.chaos.waiting import is_over
from tests.factories import RunFactory
from tests.journeys.worker import SLOW, TESTER, Bench, bench

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(600), pytest.mark.django_db(transaction=True)]

REAL_RACES = 12
NEVER_ENDS = (
    "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(900)"
)


def stop(run: Run) -> None:
    request_stop(run=run, by=TESTER, now=datetime.now(UTC))


def seen_by_checkers(*runs: Run) -> Evidence:
    """Runs of the test database as the checkers know them."""
    fields = ("id", "run_id", "at", "kind", "from_state", "to_state")
    rows = RunEvent.objects.filter(run__in=runs).order_by("pk").values_list(*fields)
    return Evidence(
        runs={run.pk: RunRow(id=run.pk, state=run.state, queued_at=run.queued_at) for run in runs},
        events=[Event(id=pk, run=run, at=at, kind=kind, frm=frm, to=to) for pk, run, at, kind, frm, to in rows],
    )


@pytest.mark.docker
def test_real_stops_at_the_moment_of_the_end_leave_one_end_each() -> None:
    with bench("docker") as panel:
        panel.start_worker()
        runs = [panel.request(SLOW, "20", "20", "2", "0", cpus=0.1) for _ in range(REAL_RACES)]
        timers = []
        for number, run in enumerate(runs):
            panel.wait(run, lambda run: run.state == State.RUNNING or is_over(run), seconds=120)
            # Around the second that each of them takes.
            at = (run.started_at or datetime.now(UTC)) + timedelta(seconds=0.6 + 0.15 * number)
            pause = max(0.0, (at - datetime.now(UTC)).total_seconds())
            timers.append(threading.Timer(pause, _stop_or_be_late, (run.pk,)))
            timers[-1].start()
        for timer in timers:
            timer.join()
        for run in runs:
            panel.wait(run, is_over, seconds=120)
        assert terminal_once(seen_by_checkers(*runs)) == []
        print(Counter(run.state for run in runs))
        assert {run.state for run in runs} <= {State.SUCCEEDED, State.CANCELED}
        for run in runs:
            assert lines(run) == [f"line {number}" for number in range(1, run.lines + 1)]
            assert run.state == State.CANCELED or run.lines == 20


def _stop_or_be_late(run_id: int) -> None:
    try:
        stop(Run.objects.get(pk=run_id))
    except RunFinished:
        pass
    finally:
        connection.close()


@pytest.fixture
def panel() -> Iterator[Bench]:
    with bench("docker") as made:
        yield made


def container(run: Run) -> str:
    """Its status on the engine; empty when there is none."""
    client = docker.from_env()
    try:
        return str(client.containers.get(f"claw-{settings.CLAWPANEL_INSTALL}-r{run.pk}-a{max(run.attempt, 1)}").status)
    except docker.errors.NotFound:
        return ""
    finally:
        client.close()


def queued(panel: Bench) -> Run:
    return panel.request(SLOW, "9000", "10", "10", "0", cpus=0.1)


def claimed_by_a_dead_worker(panel: Bench) -> Run:
    """Starting, and nothing of it exists."""
    run = queued(panel)
    panel.more["CLAW_CRASH_AT"] = "claimed"
    panel.start_worker().wait(60)
    del panel.more["CLAW_CRASH_AT"]
    run.refresh_from_db()
    assert run.state == State.STARTING
    return run


def running(panel: Bench) -> Run:
    run = queued(panel)
    panel.start_worker()
    panel.wait(run, lambda run: run.lines > 0, seconds=120)
    return run


def running_without_a_worker(panel: Bench) -> Run:
    run = running(panel)
    panel.kill_worker()
    return run


def deaf(panel: Bench) -> Run:
    """It ignores SIGTERM, and is stopping already."""
    run = panel.request(NEVER_ENDS, cpus=0.1, grace_seconds=2)
    panel.start_worker()
    panel.wait(run, lambda run: run.lines > 0, seconds=120)
    stop(run)
    assert run.state == State.STOPPING
    return run


def paused(panel: Bench) -> Run:
    run = running(panel)
    request_pause(run=run, by=TESTER, now=datetime.now(UTC))
    panel.wait(run, lambda run: run.state == State.PAUSED, seconds=30)
    return run


def waiting_to_retry(panel: Bench) -> Run:
    policy = RetryPolicy(attempts=3, delay_seconds=600, jitter=0)
    run = panel.request("raise SystemExit(1)", cpus=0.1, retry=policy)
    panel.start_worker()
    panel.wait(run, lambda run: run.state == State.RETRY_WAIT, seconds=120)
    return run


SITUATIONS = (queued, claimed_by_a_dead_worker, running, running_without_a_worker, deaf, paused, waiting_to_retry)


@pytest.mark.docker
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.__name__)
def test_a_stop_ends_a_run_in_any_state_and_only_when_it_is_gone(
    panel: Bench, situation: Callable[[Bench], Run]
) -> None:
    run = situation(panel)
    assert run.state in ACTIVE
    stop(run)
    stop(run) if run.state in ACTIVE else None  # again changes nothing
    if not is_over(run):
        assert run.state == State.STOPPING
        if not panel.workers or panel.workers[-1].poll() is not None:
            panel.start_worker()
        panel.wait(run, is_over, seconds=90)
        assert container(run) in ("", "exited", "removing", "dead")
    assert (run.state, run.reason) == (State.CANCELED, "stopped_by_user")
    assert terminal_once(seen_by_checkers(run)) == []
    assert RunEvent.objects.filter(run=run, to_state__in=(State.STOPPING, State.CANCELED)).count() <= 2
    before = RunEvent.objects.filter(run=run).count()
    with pytest.raises(RunFinished):
        stop(run)
    assert RunEvent.objects.filter(run=run).count() == before
    panel.wait(run, lambda run: container(run) == "", seconds=60)


@pytest.mark.docker
def test_kill_ends_what_has_a_long_grace_at_once(panel: Bench) -> None:
    run = panel.request(NEVER_ENDS, cpus=0.1, grace_seconds=300)
    panel.start_worker()
    panel.wait(run, lambda run: run.lines > 0, seconds=120)
    stop(run)
    request_kill(run=run, by=TESTER, now=datetime.now(UTC))
    panel.wait(run, is_over, seconds=20)
    assert (run.state, run.exit_code) == (State.CANCELED, 137)


def test_every_terminal_state_refuses_a_stop() -> None:
    for state in TERMINAL:
        run = RunFactory(state=state, finished_at=datetime.now(UTC), request_id=uuid.uuid4())
        with pytest.raises(RunFinished):
            stop(run)
        run.refresh_from_db()
        assert run.state == state
