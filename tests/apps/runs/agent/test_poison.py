"""A run that kills one worker after another is set aside; one whose workers leave in peace is not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from apps.runs import leases
from apps.runs.models import Run, RunEvent
from apps.runs.reasons import sentence
from tests.apps.runs.agent.rig import Rig, ended, lines, orphan


def deaths(rig: Rig, run: Run, count: int, *, first: int = 2) -> Rig:
    """So many workers die, each soon after it has taken the run over. The last is the one that lives."""
    last = rig
    for number in range(first, first + count):
        orphan(run)
        last = rig.second(f"w{number}")
        last.agent.dispatcher.tick()
    run.refresh_from_db()
    return last


def test_the_third_death_sets_it_aside_and_what_it_wrote_is_not_read(rig: Rig) -> None:
    run, attempt = rig.running()
    attempt.print("read by the first one")
    rig.tail()
    attempt.print("perhaps deadly")
    deaths(rig, run, 2)
    assert run.state == "running"
    last = deaths(rig, run, 1, first=4)
    assert (run.state, run.stop_cause) == ("stopping", "poison")
    last.turn()
    last.finish()
    assert ended(run) == ("failed", "poison")
    assert lines(run) == ["read by the first one"]
    assert run.log_damaged
    assert attempt.asked[0] == "terminate"
    assert rig.executor.attempts == {}
    assert sentence(run).startswith("Set aside: 3 workers died one after another")


def test_workers_that_leave_in_peace_are_no_deaths(rig: Rig) -> None:
    run, _attempt = rig.running()
    worker = "w1"
    for number in range(2, 7):
        leases.release(rig.station.node.pk, worker)
        worker = f"w{number}"
        rig.second(worker).agent.dispatcher.tick()
    run.refresh_from_db()
    assert (run.state, run.token) == ("running", 6)
    assert {event.detail.get("left") for event in RunEvent.objects.filter(run=run, kind="adopted")} == {True}


def test_deaths_far_apart_are_bad_luck(rig: Rig) -> None:
    run, _attempt = rig.running()
    deaths(rig, run, 2)
    long_ago = datetime.now(UTC) - leases.POISON_SPAN - timedelta(seconds=1)
    RunEvent.objects.filter(run=run, kind="adopted").update(at=long_ago)
    deaths(rig, run, 2, first=4)
    assert run.state == "running"


def test_a_run_that_is_being_stopped_keeps_its_cause(rig: Rig) -> None:
    run, _attempt = rig.running()
    Run.objects.filter(pk=run.pk).update(state="stopping", stop_cause="user")
    deaths(rig, run, 3)
    assert (run.state, run.stop_cause) == ("stopping", "user")


def test_it_can_be_switched_off(rig: Rig) -> None:
    run, _attempt = rig.running()
    for number in range(2, 7):
        orphan(run)
        Rig(rig.home, rig.executor, f"w{number}", poison_deaths=0).agent.dispatcher.tick()
    run.refresh_from_db()
    assert (run.state, run.token) == ("running", 6)
