"""Pause and resume of a run, and how they stand beside back-pressure, stops and adoptions."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from apps.runs import services
from apps.runs.models import Run, RunEvent
from apps.runs.states import TERMINAL
from tests.apps.runs.agent.rig import ALICE, Rig, ended, orphan


def pause(rig: Rig, run: Run) -> None:
    services.request_pause(run=run, by=ALICE, now=datetime.now(UTC))
    rig.turn()
    run.refresh_from_db()


def resume(rig: Rig, run: Run) -> None:
    services.request_resume(run=run, by=ALICE, now=datetime.now(UTC))
    rig.turn()
    run.refresh_from_db()


def test_a_pause_freezes_the_run_and_a_resume_lets_it_go_on(rig: Rig) -> None:
    run, attempt = rig.running()
    pause(rig, run)
    assert (run.state, attempt.asked) == ("paused", ["pause"])
    assert run.paused_at is not None
    resume(rig, run)
    assert (run.state, run.paused_at, attempt.asked) == ("running", None, ["pause", "resume"])
    assert run.paused_seconds > 0
    attempt.exit(0)
    rig.finish()
    assert ended(run) == ("succeeded", "")


def test_a_run_is_shown_as_paused_only_when_it_is_proven_frozen(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    run, attempt = rig.running()
    monkeypatch.setattr(rig.executor, "pause", lambda _handle: None)  # the engine says yes and does not
    pause(rig, run)
    assert run.state == "running"
    monkeypatch.undo()
    rig.turn()
    assert (ended(run)[0], attempt.asked) == ("paused", ["pause"])


def test_a_pause_taken_back_before_it_was_carried_out_leaves_no_trace(rig: Rig) -> None:
    run, attempt = rig.running()
    services.request_pause(run=run, by=ALICE, now=datetime.now(UTC))
    services.request_resume(run=run, by=ALICE, now=datetime.now(UTC))
    rig.turn()
    assert (ended(run)[0], attempt.asked) == ("running", [])


def test_the_time_of_a_pause_counts_for_no_limit(rig: Rig) -> None:
    run, attempt = rig.running(timeout_seconds=100, idle_seconds=50, total_seconds=200)
    followed = rig.station.roster.get(run.pk)
    assert followed is not None
    rig.tail()
    run.refresh_from_db()
    total_before = run.total_deadline_at
    assert total_before is not None
    pause(rig, run)
    # An hour goes by.
    followed.clocks.paused_since = time.monotonic() - 3600
    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    followed.paused_at = hour_ago
    followed.clocks.run_end = time.monotonic() - 3500
    followed.clocks.last_sign = time.monotonic() - 3610
    rig.turn()
    assert ended(run)[0] == "paused"
    resume(rig, run)
    assert (run.state, attempt.asked) == ("running", ["pause", "resume"])
    assert run.paused_seconds == pytest.approx(3600, abs=5)
    assert run.total_deadline_at == pytest.approx(total_before + timedelta(hours=1), abs=timedelta(seconds=5))


def test_a_paused_run_is_adopted_as_paused_and_its_limits_stand_still_there_too(rig: Rig) -> None:
    run, attempt = rig.running(timeout_seconds=100, idle_seconds=50)
    pause(rig, run)
    long_ago = datetime.now(UTC) - timedelta(hours=2)
    Run.objects.filter(pk=run.pk).update(paused_at=long_ago + timedelta(seconds=40), started_at=long_ago)
    run.attempts.update(started_at=long_ago)
    RunEvent.objects.filter(run=run).update(at=long_ago)
    orphan(run)
    second = rig.second()
    for _ in range(3):
        second.turn()
    assert (ended(run), attempt.asked) == (("paused", ""), ["pause"])
    services.request_resume(run=run, by=ALICE, now=datetime.now(UTC))
    for _ in range(2):
        second.turn()
    assert (ended(run)[0], attempt.asked) == ("running", ["pause", "resume"])
    assert run.paused_seconds == pytest.approx(7160, abs=5)
    followed = second.station.roster.get(run.pk)
    assert followed is not None
    assert followed.clocks.seconds_left(time.monotonic()) == pytest.approx(10, abs=3)  # 40 of 50 s were silent


def test_a_worker_that_dies_between_freezing_and_saying_so_is_finished_by_the_next(rig: Rig) -> None:
    run, attempt = rig.running()
    services.request_pause(run=run, by=ALICE, now=datetime.now(UTC))
    rig.executor.pause(attempt.handle)
    orphan(run)
    second = rig.second()
    second.turn()
    assert (ended(run)[0], attempt.asked) == ("paused", ["pause"])


def test_a_worker_that_dies_between_thawing_and_saying_so_is_finished_by_the_next(rig: Rig) -> None:
    run, attempt = rig.running()
    pause(rig, run)
    services.request_resume(run=run, by=ALICE, now=datetime.now(UTC))
    rig.executor.resume(attempt.handle)
    orphan(run)
    second = rig.second()
    second.turn()
    assert (ended(run)[0], attempt.asked) == ("running", ["pause", "resume"])


def test_a_paused_run_can_be_stopped(rig: Rig) -> None:
    run, attempt = rig.running()
    pause(rig, run)
    services.request_stop(run=run, by=ALICE, now=datetime.now(UTC))
    rig.turn()
    rig.turn()
    assert attempt.asked == ["pause", "resume", "terminate"]
    assert ended(run) == ("canceled", "stopped_by_user")


def test_a_paused_run_can_be_killed_at_once(rig: Rig) -> None:
    run, attempt = rig.running(grace_seconds=600)
    attempt.ignores_term = True
    pause(rig, run)
    services.request_kill(run=run, by=ALICE, now=datetime.now(UTC))
    rig.turn()
    rig.turn()
    assert attempt.asked == ["pause", "kill"]
    assert ended(run) == ("canceled", "stopped_by_user")


def test_a_pause_that_lasts_too_long_ends_by_itself(rig: Rig) -> None:
    run, attempt = rig.running(pause_seconds=60)
    pause(rig, run)
    followed = rig.station.roster.get(run.pk)
    assert followed is not None
    followed.clocks.paused_since = time.monotonic() - 61
    rig.turn()
    rig.turn()
    assert (ended(run)[0], attempt.asked) == ("running", ["pause", "resume"])
    assert RunEvent.objects.filter(run=run, kind="resume", actor__startswith="system").exists()


def test_a_run_held_back_for_its_output_is_not_paused_and_a_pause_outlasts_that(rig: Rig) -> None:
    rig = Rig(rig.home, rig.executor, most_behind=1000, caught_up=100)
    run, attempt = rig.running()
    followed = rig.station.roster.get(run.pk)
    assert followed is not None
    followed.behind = 5000
    rig.agent.observer.tick()
    assert (ended(run)[0], attempt.asked) == ("running", ["pause"])
    services.request_pause(run=run, by=ALICE, now=datetime.now(UTC))
    rig.agent.dispatcher.tick()
    rig.agent.observer.tick()
    followed.behind = 0
    rig.agent.observer.tick()
    assert (ended(run)[0], attempt.asked) == ("paused", ["pause"])
    followed.behind = 5000
    services.request_resume(run=run, by=ALICE, now=datetime.now(UTC))
    rig.agent.dispatcher.tick()
    rig.agent.observer.tick()
    assert (ended(run)[0], attempt.asked) == ("running", ["pause"])  # still held back
    followed.behind = 0
    rig.agent.observer.tick()
    assert attempt.asked == ["pause", "resume"]


def test_a_run_that_ends_while_its_pause_is_asked_for_has_ended(rig: Rig) -> None:
    run, attempt = rig.running()
    services.request_pause(run=run, by=ALICE, now=datetime.now(UTC))
    attempt.exit(0)
    rig.turn()
    assert ended(run)[0] in TERMINAL
    assert attempt.asked == []
