"""Workers die, are told to leave, and come back; runs do not notice."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection

from apps.runs.models import Node, Run
from apps.runs.states import TERMINAL
from tests.apps.runs.agent.rig import items, lines
from tests.journeys.worker import ROOT, SLOW, Bench, bench

pytestmark = pytest.mark.django_db(transaction=True)
CLOCK = ROOT / "tests" / "chaos" / "clock"  # moves a worker's clock


@pytest.fixture
def panel() -> Iterator[Bench]:
    with bench() as made:
        yield made


def is_over(run: object) -> bool:
    return run.state in TERMINAL  # type: ignore[attr-defined]


def test_a_worker_runs_a_spider_from_request_to_end(panel: Bench) -> None:
    panel.start_worker()
    run = panel.request(SLOW, "100", "1000", "10", "0")
    panel.wait(run, is_over)
    assert (run.state, run.lines, run.items) == ("succeeded", 100, 10)
    assert lines(run) == [f"line {number}" for number in range(1, 101)]
    assert items(run) == [{"n": number} for number in range(1, 11)]
    panel.wait(run, lambda _run: not any((panel.home / "runs").iterdir()))


@pytest.mark.parametrize("how", ["kill -9", "SIGTERM"])
def test_a_run_goes_on_without_its_worker_and_nothing_is_lost_or_doubled(panel: Bench, how: str) -> None:
    worker = panel.start_worker()
    run = panel.request(SLOW, "1500", "200", "10", "0")
    panel.wait(run, lambda run: run.lines > 200)
    if how == "kill -9":
        panel.kill_worker()
    else:
        worker.send_signal(signal.SIGTERM)
        worker.wait(10)
    run.refresh_from_db()
    assert run.state == "running"
    panel.start_worker()
    panel.wait(run, is_over)
    assert run.state == "succeeded", panel.log()[-3000:]
    assert lines(run) == [f"line {number}" for number in range(1, 1501)]
    assert items(run) == [{"n": number} for number in range(1, 151)]
    assert (run.attempt, run.token) == (1, 2)


def test_a_worker_leaves_at_once_and_its_run_is_taken_over_within_seconds(panel: Bench) -> None:
    worker = panel.start_worker()
    run = panel.request(SLOW, "3000", "50", "10", "0")
    panel.wait(run, lambda run: run.lines > 20)
    panel.start_worker()
    time.sleep(5)  # the next one is there, as in a deploy
    asked = time.monotonic()
    worker.send_signal(signal.SIGTERM)
    worker.wait(30)
    left = time.monotonic() - asked
    panel.wait(run, lambda run: run.token == 2)
    assert left < 10
    assert time.monotonic() - asked < 10
    run.refresh_from_db()
    assert run.state == "running"


@pytest.mark.parametrize("hours", [2, -2])
def test_a_worker_whose_clock_is_off_steals_no_run_and_cuts_none_short(
    panel: Bench, tmp_path: Path, hours: int
) -> None:
    right = panel.start_worker()
    run = panel.request(SLOW, "800", "50", "10", "0", timeout_seconds=120, idle_seconds=60, total_seconds=180)
    panel.wait(run, lambda run: run.lines > 20)
    (tmp_path / "clock").write_text(str(hours * 3600))
    panel.start_worker(PYTHONPATH=str(CLOCK), CLAW_CHAOS_CLOCK=str(tmp_path / "clock"))
    panel.wait(run, lambda _run: "clock differs" in Node.objects.get().trouble)
    time.sleep(5)
    run.refresh_from_db()
    assert (run.token, run.state) == (1, "running"), "it has not taken what is not its own"
    os.killpg(right.pid, signal.SIGKILL)
    right.wait()
    panel.wait(run, lambda run: run.token == 2)
    panel.wait(run, is_over)
    assert (run.state, run.reason) == ("succeeded", ""), panel.log()[-3000:]
    assert lines(run) == [f"line {number}" for number in range(1, 801)]
    assert run.started_at is not None
    assert run.finished_at is not None
    assert timedelta(0) < run.finished_at - run.started_at < timedelta(minutes=2)


def test_what_a_newer_version_has_written_does_not_disturb_an_older_worker(panel: Bench) -> None:
    run = panel.request(SLOW, "50", "200", "10", "0")
    spec = {**run.spec, "invented_later": {"a": 1}, "limits": {**run.spec["limits"], "gpu_seconds": 5}}
    Run.objects.filter(pk=run.pk).update(spec=spec)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE runs_run ADD COLUMN invented_later integer NULL DEFAULT 7")
    try:
        panel.start_worker()
        panel.wait(run, is_over)
        assert run.state == "succeeded", panel.log()[-3000:]
    finally:
        panel.kill_worker()
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE runs_run DROP COLUMN invented_later")


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_kills_again_and_again_during_many_items_store_each_item_once(panel: Bench) -> None:
    run = panel.request(SLOW, "4000", "100", "1", "0")
    kills = 0
    while not is_over(run):
        # The run is not what kills them.
        panel.start_worker(CLAWPANEL_POISON_DEATHS="0")
        seen = run.items
        panel.wait(run, lambda run, seen=seen: run.items > seen or is_over(run))  # type: ignore[misc]
        panel.kill_worker()
        kills += 1
    assert run.state == "succeeded"
    assert items(run) == [{"n": number} for number in range(1, 4001)]
    assert lines(run) == [f"line {number}" for number in range(1, 4001)]
    # A worker may be killed before it has adopted: what it would have found was stored by the one before.
    assert 2 < run.token <= kills


@pytest.mark.docker
def test_a_worker_with_docker_runs_a_spider_and_adopts_it_after_a_kill() -> None:
    with bench("docker") as panel:
        panel.start_worker()
        run = panel.request(SLOW, "1500", "200", "10", "3")
        panel.wait(run, lambda run: run.lines > 200, seconds=180)
        panel.kill_worker()
        panel.start_worker()
        panel.wait(run, is_over, seconds=120)
        assert (run.state, run.reason, run.exit_code) == ("failed", "exit_nonzero", 3)
        assert lines(run) == [f"line {number}" for number in range(1, 1501)]
        assert items(run) == [{"n": number} for number in range(1, 151)]
        assert run.samples.exists()
        panel.wait(run, lambda _run: not any((panel.home / "runs").iterdir()))
