"""A real worker dies at each place where it could hurt; the next one brings the run to the promised end."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from apps.core.actors import Actor
from apps.runs import crash, services
from apps.runs.models import Run, RunEvent
from apps.runs.states import TERMINAL
from tests.apps.runs.agent.rig import items, lines
from tests.journeys.worker import SLOW, TESTER, Bench, bench

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]

COUNT = 40
PATIENT = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: print("told to end", flush=True))
print("ready", flush=True)
time.sleep(120)
"""

ON_THE_WAY = (
    "claimed",
    "before-create",
    "created",
    "before-start",
    "started",
    "marked-running",
    "before-store:2",
    "storing:2",
    "stored:2",
    "exit-seen",
    "end-stored",
    "removed",
)
STOPPING = ("before-terminate", "terminated", "before-kill")
PAUSING = ("frozen", "paused", "thawed")


@pytest.fixture(params=["process", pytest.param("docker", marks=pytest.mark.docker)])
def panel(request: pytest.FixtureRequest) -> Iterator[Bench]:
    with bench(request.param) as made:
        yield made


def test_every_crash_point_is_tried() -> None:
    tried = {name.partition(":")[0] for name in (*ON_THE_WAY, *STOPPING, *PAUSING, "adopted")}
    assert tried == set(crash.POINTS)


def is_over(run: Run) -> bool:
    return run.state in TERMINAL


def until_dead(panel: Bench) -> None:
    assert panel.workers[-1].wait(120) == crash.KILLED, panel.log()[-3000:]


def assert_whole(panel: Bench, run: Run) -> None:
    """Every line and item once, in one attempt; nothing is left on the machine."""
    panel.wait(run, is_over)
    assert (run.state, run.reason, run.attempt) == ("succeeded", "", 1), panel.log()[-3000:]
    assert lines(run) == [f"line {number}" for number in range(1, COUNT + 1)]
    assert items(run) == [{"n": number} for number in range(1, COUNT // 4 + 1)]
    ends = RunEvent.objects.filter(run=run, to_state__in=TERMINAL).count()
    assert ends == 1
    panel.wait(run, lambda _run: not age_folders(panel))


def age_folders(panel: Bench) -> int:
    """What lies around for a minute is a leftover."""
    folders = list((panel.home / "runs").iterdir())
    for folder in folders:
        with contextlib.suppress(FileNotFoundError):
            os.utime(folder, (0, 0))
    return len(folders)


@pytest.mark.parametrize("point", ON_THE_WAY)
def test_a_run_whose_worker_dies_is_brought_to_its_end_once(panel: Bench, point: str) -> None:
    panel.start_worker(CLAW_CRASH_AT=point)
    run = panel.request(SLOW, str(COUNT), "50", "4", "0")
    until_dead(panel)
    run.refresh_from_db()
    assert is_over(run) == (point in ("end-stored", "removed"))
    age_folders(panel)
    panel.start_worker()
    assert_whole(panel, run)


def is_frozen(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("T")


def test_a_worker_frozen_while_it_stores_does_not_keep_the_run_to_itself(panel: Bench) -> None:
    """It holds the locks of its transaction, which nobody would get past as long as its session lives."""
    frozen = panel.start_worker(CLAW_CRASH_AT="storing:2", CLAW_CRASH_BY="freeze")
    run = panel.request(SLOW, str(COUNT), "10", "4", "0")
    panel.wait(run, lambda _run: is_frozen(frozen.pid))
    panel.start_worker()
    assert_whole(panel, run)
    assert is_frozen(frozen.pid)
    frozen.send_signal(signal.SIGCONT)
    panel.wait(run, lambda _run: "works again" in panel.log())
    assert_whole(panel, run)
    assert run.token == 2
    assert frozen.poll() is None


def test_an_adopter_that_dies_too_is_followed_by_the_next(panel: Bench) -> None:
    panel.start_worker()
    run = panel.request(SLOW, str(COUNT), "10", "4", "0")
    panel.wait(run, lambda run: run.lines > 0)
    panel.kill_worker()
    panel.start_worker(CLAW_CRASH_AT="adopted")
    until_dead(panel)
    panel.start_worker()
    assert_whole(panel, run)
    assert run.token == 3


def test_a_run_that_kills_one_worker_after_another_is_set_aside(panel: Bench) -> None:
    panel.start_worker()
    run = panel.request(SLOW, "5000", "10", "4", "0")
    panel.wait(run, lambda run: run.lines > 0)
    panel.kill_worker()
    for _ in range(2):
        panel.start_worker(CLAW_CRASH_AT="adopted")
        until_dead(panel)
    panel.start_worker()
    panel.wait(run, is_over)
    assert (run.state, run.reason, run.detail["deaths"]) == ("failed", "poison", 3)


@pytest.mark.parametrize("point", STOPPING)
def test_a_stop_is_carried_out_whoever_dies_at_it(panel: Bench, point: str) -> None:
    panel.start_worker(CLAW_CRASH_AT=point)
    run = panel.request(PATIENT, grace_seconds=1)
    panel.wait(run, lambda run: run.lines > 0)
    services.request_stop(run=run, by=Actor("user", "alice"), now=datetime.now(UTC))
    until_dead(panel)
    run.refresh_from_db()
    assert run.state == "stopping"
    panel.start_worker()
    panel.wait(run, is_over)
    assert (run.state, run.reason, run.detail.get("by")) == ("canceled", "stopped_by_user", "alice")


@pytest.mark.parametrize("point", PAUSING)
def test_a_pause_is_carried_out_whoever_dies_at_it(panel: Bench, point: str) -> None:
    panel.start_worker(CLAW_CRASH_AT=point)
    run = panel.request(SLOW, str(COUNT), "10", "4", "0")
    panel.wait(run, lambda run: run.lines > 0)
    services.request_pause(run=run, by=TESTER, now=datetime.now(UTC))
    if point == "thawed":
        panel.wait(run, lambda run: run.state == "paused")
        services.request_resume(run=run, by=TESTER, now=datetime.now(UTC))
    until_dead(panel)
    panel.start_worker()
    if point != "thawed":
        panel.wait(run, lambda run: run.state == "paused" and run.token == 2)
        services.request_resume(run=run, by=TESTER, now=datetime.now(UTC))
    assert_whole(panel, run)
    changes = RunEvent.objects.filter(run=run, kind="state").order_by("pk").values_list("to_state", flat=True)
    assert list(changes) == ["queued", "starting", "running", "paused", "running", "succeeded"]
    assert run.paused_seconds > 0
