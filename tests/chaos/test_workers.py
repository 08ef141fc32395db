"""Workers die, freeze and are replaced; what they looked after does not notice. Real processes, real containers."""

from __future__ import annotations

import signal
import statistics
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from apps.runs.models import Item, Run, RunEvent
from apps.runs.policies import RetryPolicy
from apps.runs.states import State
from clawpanel.celery import app
from tests.apps.runs.agent.rig import items, lines
from tests.chaos.ledger import Ledger
from tests.chaos.waiting import is_over, until
from tests.journeys.worker import SLOW, Bench, bench

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.docker,
    pytest.mark.timeout(600),
    pytest.mark.django_db(transaction=True),
]

LEAVE_SECONDS = 5
TAKEOVER_SECONDS = 30
TAKEOVER_MEDIAN_SECONDS = 22
TAKEOVER_AFTER_TERM_SECONDS = 10


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger(settings.CLAWPANEL_INSTALL) as listening:
        yield listening


@pytest.fixture
def panel(ledger: Ledger) -> Iterator[Bench]:
    with bench("docker") as made:
        yield made


def assert_whole(run: Run, count: int, items_every: int) -> None:
    assert lines(run) == [f"line {number}" for number in range(1, count + 1)]
    assert items(run) == [{"n": number} for number in range(1, count // items_every + 1)]


def starts(ledger: Ledger, *runs: Run) -> list[int]:
    """How often a container of each was started, by the engine's own account."""
    return [sum(entry.what == "start" and entry.run == run.pk for entry in ledger.entries) for run in runs]


def hint(name: str) -> None:
    """Ten times the same."""
    for _ in range(10):
        app.send_task(name, queue="control", retry=False)


def remove_by_hand(run: Run) -> None:
    name = f"claw-{settings.CLAWPANEL_INSTALL}-r{run.pk}-a1"
    subprocess.run(["docker", "rm", "-f", name], check=True, capture_output=True)


def adopted(run: Run) -> Any:
    return RunEvent.objects.filter(run=run, kind="adopted").order_by("pk")


def test_two_kills_in_one_run_lose_and_double_nothing(panel: Bench, ledger: Ledger) -> None:
    panel.start_worker()
    run = panel.request(SLOW, "900", "60", "3", "0", cpus=0.2)
    took = []
    for _ in range(2):
        panel.wait(run, lambda run: run.state == State.RUNNING and run.lines > 0, seconds=120)
        seen = run.lines
        panel.wait(run, lambda run, seen=seen: run.lines > seen, seconds=60)  # type: ignore[misc]
        before = adopted(run).count()
        killed = time.monotonic()
        panel.kill_worker()
        panel.start_worker()
        until(lambda before=before: adopted(run).count() > before, TAKEOVER_SECONDS)  # type: ignore[misc]
        took.append(time.monotonic() - killed)
    panel.wait(run, is_over, seconds=120)
    assert (run.state, run.attempt, run.token) == ("succeeded", 1, 3)
    assert_whole(run, 900, 3)
    assert starts(ledger, run) == [1]
    assert statistics.median(took) < TAKEOVER_MEDIAN_SECONDS


def test_a_container_that_ends_while_no_worker_lives_is_stored_to_its_last_line(panel: Bench, ledger: Ledger) -> None:
    panel.start_worker()
    run = panel.request(SLOW, "200", "50", "2", "3", cpus=0.2)
    panel.wait(run, lambda run: run.lines > 10, seconds=120)
    panel.kill_worker()
    until(lambda: any(entry.what == "die" and entry.run == run.pk for entry in ledger.entries), 60)
    run.refresh_from_db()
    assert run.state == "running"
    died = next(entry.at for entry in ledger.entries if entry.what == "die")
    panel.start_worker()
    panel.wait(run, is_over, seconds=60)
    assert (run.state, run.reason, run.exit_code, run.attempt) == ("failed", "exit_nonzero", 3, 1)
    assert_whole(run, 200, 2)
    assert run.finished_at is not None
    # The time of the end is the container's, not that of the look.
    assert abs((run.finished_at - died).total_seconds()) < 1
    assert starts(ledger, run) == [1]


def test_twenty_containers_live_through_a_deploy(panel: Bench, ledger: Ledger) -> None:
    old = panel.start_worker()
    runs = [panel.request(SLOW, "600", "15", "4", "0", cpus=0.05) for _ in range(20)]
    for run in runs:
        panel.wait(run, lambda run: run.state == State.RUNNING, seconds=180)
    panel.start_worker()
    until(lambda: panel.log().count("agent of node") == 2, 60)
    alive = [run.pk for run in runs if Run.objects.get(pk=run.pk).state == State.RUNNING]
    told = time.monotonic()
    old.send_signal(signal.SIGTERM)
    old.wait(LEAVE_SECONDS + 5)
    left = time.monotonic() - told
    until(lambda: RunEvent.objects.filter(kind="adopted").count() >= len(alive), TAKEOVER_SECONDS)
    took = time.monotonic() - told
    for run in runs:
        panel.wait(run, is_over, seconds=180)
        assert (run.state, run.attempt, run.token) == ("succeeded", 1, 2 if run.pk in alive else 1)
        assert_whole(run, 600, 4)
    assert starts(ledger, *runs) == [1] * 20
    assert len(alive) >= 15, "the others had ended before all were there"
    assert left < LEAVE_SECONDS
    assert took < TAKEOVER_AFTER_TERM_SECONDS


def test_a_worker_that_was_frozen_finds_its_run_taken_and_touches_nothing(panel: Bench, ledger: Ledger) -> None:
    """The other is there before its lease has run out, and waits for it: frozen is not dead."""
    frozen = panel.start_worker()
    run = panel.request(SLOW, "2100", "60", "3", "0", cpus=0.2)
    panel.wait(run, lambda run: run.lines > 10, seconds=120)
    frozen.send_signal(signal.SIGSTOP)
    panel.start_worker()
    until(lambda: adopted(run).exists(), TAKEOVER_SECONDS)
    frozen.send_signal(signal.SIGCONT)
    panel.wait(run, is_over, seconds=120)
    assert (run.state, run.attempt, run.token) == ("succeeded", 1, 2)
    assert_whole(run, 2100, 3)
    assert starts(ledger, run) == [1]
    assert adopted(run).count() == 1
    assert frozen.poll() is None


def test_a_hint_that_comes_ten_times_starts_a_run_once(panel: Bench, ledger: Ledger) -> None:
    panel.start_worker()
    run = panel.request(SLOW, "20", "20", "2", "0", cpus=0.2)
    panel.wait(run, lambda run: run.state != State.QUEUED, seconds=120)
    hint("runs.wake")
    panel.wait(run, is_over, seconds=120)
    hint("runs.wake")
    hint("runs.sweep")
    again = panel.request(SLOW, "20", "20", "2", "0", cpus=0.2)
    panel.wait(again, is_over, seconds=120)
    assert starts(ledger, run, again) == [1, 1]
    assert (run.token, again.token) == (1, 1)


def test_a_container_removed_by_hand_is_tried_again(panel: Bench) -> None:
    """`docker rm -f` kills first: who looks in between sees a container that was killed from outside."""
    panel.start_worker()
    policy = RetryPolicy(attempts=2, delay_seconds=1, jitter=0)
    run = panel.request(SLOW, "120", "20", "2", "0", cpus=0.2, retry=policy)
    panel.wait(run, lambda run: run.lines > 10, seconds=120)
    remove_by_hand(run)
    panel.wait(run, is_over, seconds=120)
    assert (run.state, run.attempt) == ("succeeded", 2)
    first, second = run.attempts.order_by("number")
    assert (first.reason, first.infrastructure) in (("container_vanished", True), ("killed", False))
    assert second.exit_code == 0
    assert lines(run)[-120:] == [f"line {n}" for n in range(1, 121)]


def test_what_was_started_by_a_worker_that_could_not_say_so_is_never_started_again(
    panel: Bench, ledger: Ledger
) -> None:
    """Its container is removed before another worker looks: a new attempt, not the same one twice."""
    run = panel.request(SLOW, "200", "20", "2", "0", cpus=0.2)
    panel.more["CLAW_CRASH_AT"] = "started"
    panel.start_worker().wait(120)
    del panel.more["CLAW_CRASH_AT"]
    until(lambda: starts(ledger, run) == [1], 10)
    time.sleep(1)  # it writes
    remove_by_hand(run)
    panel.start_worker()
    panel.wait(run, is_over, seconds=120)
    assert (run.state, run.attempt) == ("succeeded", 2)
    assert run.attempts.get(number=1).reason == "container_vanished"
    numbers = list(Item.objects.filter(run_id=run.pk, attempt=2).order_by("seq").values_list("data__n", flat=True))
    assert numbers == list(range(1, 101))
    assert Counter(entry.attempt for entry in ledger.entries if entry.what == "start") == {1: 1, 2: 1}
    secrets = f"claw-{settings.CLAWPANEL_INSTALL}/claw-{settings.CLAWPANEL_INSTALL}-r{run.pk}-*"
    until(lambda: not any(Path("/dev/shm").glob(secrets)) and not any((panel.home / "runs").iterdir()), 10)
