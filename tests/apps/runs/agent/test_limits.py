"""Idle, total, run and start limits: each ends a run with its own reason and the right seconds."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from apps.engine import spool
from apps.engine.errors import EngineUnavailable
from apps.engine.executors.fake import FakeAttempt
from apps.runs import reasons, services
from apps.runs.agent.followed import Followed
from apps.runs.models import Attempt, LogChunk, Run, RunEvent
from tests.apps.runs.agent.rig import ALICE, Rig, ended, orphan


def followed_of(rig: Rig, run: Run) -> Followed:
    followed = rig.station.roster.get(run.pk)
    assert followed is not None
    return followed


def silent_for(rig: Rig, run: Run, seconds: float) -> None:
    followed_of(rig, run).clocks.last_sign = time.monotonic() - seconds


def end(rig: Rig) -> None:
    for _ in range(3):
        rig.turn()


def test_a_run_that_shows_no_sign_of_life_is_ended_with_its_words(rig: Rig) -> None:
    run, attempt = rig.running(idle_seconds=90)
    rig.tail()
    silent_for(rig, run, 89)
    rig.turn()
    assert ended(run)[0] == "running"
    silent_for(rig, run, 91)
    end(rig)
    assert attempt.asked == ["terminate"]
    assert ended(run) == ("timed_out", "idle_timeout")
    assert run.detail["seconds"] == 90


@pytest.mark.parametrize(
    "sign",
    [
        lambda attempt: attempt.print("a line"),
        lambda attempt: attempt.emit({"n": 1}),
        lambda attempt: attempt.emit({"url": "http://shop.example/"}, "request"),
        lambda attempt: attempt.emit({"message": "a line"}, "log"),
        lambda attempt: attempt.write_out(b"half a line"),
    ],
)
def test_lines_items_and_requests_are_signs_of_life(rig: Rig, sign: object) -> None:
    run, attempt = rig.running(idle_seconds=90)
    rig.tail()
    silent_for(rig, run, 91)
    sign(attempt)  # type: ignore[operator]
    rig.tail()
    end(rig)
    assert ended(run)[0] == "running"


def test_figures_that_a_hung_program_goes_on_sending_are_none(rig: Rig) -> None:
    run, attempt = rig.running(idle_seconds=90)
    rig.tail()
    silent_for(rig, run, 91)
    attempt.emit({"pages": 3}, "stat")
    rig.tail()
    end(rig)
    assert ended(run) == ("timed_out", "idle_timeout")


def long_ago(run: Run, seconds: float) -> datetime:
    """It began so long ago, and everything known of it is as old."""
    at = datetime.now(UTC) - timedelta(seconds=seconds)
    Run.objects.filter(pk=run.pk).update(started_at=at)
    Attempt.objects.filter(run_id=run.pk).update(started_at=at)
    RunEvent.objects.filter(run=run).update(at=at)
    LogChunk.objects.filter(run_id=run.pk).update(first_at=at, last_at=at)
    folder = Path(Attempt.objects.get(run_id=run.pk).run_dir)
    os.utime(folder / spool.RECORDS, (at.timestamp(), at.timestamp()))
    return at


def adopted(rig: Rig, run: Run) -> Rig:
    orphan(run)
    second = rig.second()
    second.turn()
    return second


def test_silence_goes_on_counting_after_an_adoption(rig: Rig) -> None:
    run, attempt = rig.running(idle_seconds=90)
    attempt.print("the last line")
    rig.tail()
    long_ago(run, 91)
    second = adopted(rig, run)
    end(second)
    assert ended(run) == ("timed_out", "idle_timeout")


def test_a_stored_line_is_a_sign_of_life_after_an_adoption(rig: Rig) -> None:
    run, attempt = rig.running(idle_seconds=90)
    attempt.print("a line")
    rig.tail()
    at = long_ago(run, 1000)
    LogChunk.objects.filter(run_id=run.pk).update(last_at=at + timedelta(seconds=950))
    second = adopted(rig, run)
    end(second)
    assert ended(run)[0] == "running"
    left = followed_of(second, run).clocks.seconds_left(time.monotonic())
    assert left == pytest.approx(40, abs=3)


def test_what_nobody_has_read_yet_is_a_sign_of_life_after_an_adoption(rig: Rig) -> None:
    run, attempt = rig.running(idle_seconds=90)
    long_ago(run, 1000)
    attempt.print("written while no worker lived")
    second = adopted(rig, run)
    end(second)
    assert ended(run)[0] == "running"


def test_requests_are_signs_of_life_after_an_adoption_too(rig: Rig) -> None:
    run, attempt = rig.running(idle_seconds=90)
    attempt.emit({"url": "http://shop.example/"}, "request")
    rig.tail()
    long_ago(run, 1000)
    (attempt.spec.run_dir / spool.RECORDS).touch()
    second = adopted(rig, run)
    end(second)
    assert ended(run)[0] == "running"


def test_the_limit_of_all_attempts_is_known_from_the_first_start_on(rig: Rig) -> None:
    run, attempt = rig.running(total_seconds=600, timeout_seconds=3600)
    run.refresh_from_db()
    assert run.started_at is not None
    assert run.total_deadline_at == run.started_at + timedelta(seconds=600)
    Run.objects.filter(pk=run.pk).update(total_deadline_at=datetime.now(UTC) - timedelta(seconds=1))
    second = adopted(rig, run)
    end(second)
    assert attempt.asked == ["terminate"]
    assert ended(run) == ("timed_out", "total_timeout")
    assert run.detail["seconds"] == 600


def test_a_run_frozen_for_its_output_still_meets_its_limit(rig: Rig) -> None:
    run, attempt = rig.running(timeout_seconds=60)
    followed = followed_of(rig, run)
    followed.behind = 1 << 40
    rig.agent.observer.tick()
    followed.clocks.run_end = 0.0
    rig.agent.observer.tick()
    followed.behind = 0
    end(rig)
    assert attempt.asked == ["pause", "resume", "terminate"]
    assert ended(run) == ("timed_out", "run_timeout")


def test_the_limits_of_all_runs_are_watched_while_the_engine_hangs(rig: Rig) -> None:
    runs = [rig.running(timeout_seconds=60)[0] for _ in range(3)]
    rig.executor.fail("inspect", EngineUnavailable("The engine does not answer."))
    for run in runs:
        followed_of(rig, run).clocks.run_end = 0.0
    rig.agent.observer.tick()
    assert [ended(run)[0] for run in runs] == ["stopping"] * 3
    rig.executor.fail("inspect", None)
    end(rig)
    assert [ended(run) for run in runs] == [("timed_out", "run_timeout")] * 3


def test_time_in_which_the_engine_hangs_does_not_count_for_the_start(rig: Rig) -> None:
    rig.pool.hold = True
    run = rig.request(start_seconds=5)
    rig.agent.dispatcher.tick()
    rig.station.set_trouble("engine", "The engine does not answer.")
    followed_of(rig, run).ready_at -= 60
    rig.agent.observer.tick()
    assert ended(run)[0] == "starting"
    rig.station.set_trouble("engine", "")
    followed_of(rig, run).ready_at -= 6
    end(rig)
    assert ended(run) == ("timed_out", "start_timeout")
    assert reasons.sentence(run) == "It had not started after 5 seconds."


def test_the_engines_clock_may_be_off_and_cuts_no_limit_short(rig: Rig) -> None:
    def two_hours_slow(attempt: FakeAttempt) -> None:
        begun = datetime.now(UTC) - timedelta(hours=2)
        object.__setattr__(attempt.observation, "started_at", begun)

    rig.executor.script = two_hours_slow
    rig.pool.hold = True
    run = rig.request(timeout_seconds=60)
    rig.agent.dispatcher.tick()
    # The worker that starts it dies before it can say so: the next one asks the engine.
    rig.pool.let_go()
    Run.objects.filter(pk=run.pk).update(state="starting", started_at=None)
    Attempt.objects.filter(run_id=run.pk).update(started_at=None)
    second = adopted(rig, run)
    end(second)
    assert ended(run)[0] == "running"
    assert run.started_at is not None
    assert datetime.now(UTC) - run.started_at < timedelta(minutes=1)


def test_kill_now_skips_the_grace_and_is_not_told_as_unwillingness(rig: Rig) -> None:
    run, attempt = rig.running(grace_seconds=600)
    attempt.ignores_term = True
    services.request_stop(run=run, by=ALICE, now=datetime.now(UTC))
    rig.turn()
    rig.turn()
    assert attempt.asked == ["terminate"]
    services.request_kill(run=run, by=ALICE, now=datetime.now(UTC))
    end(rig)
    assert attempt.asked == ["terminate", "kill"]
    assert ended(run) == ("canceled", "stopped_by_user")
    assert "killed_after_grace" not in run.detail


def test_the_database_says_who_asked_first(rig: Rig) -> None:
    run, _attempt = rig.running()
    services.request_stop(run=run, by=ALICE, now=datetime.now(UTC))
    followed_of(rig, run).clocks.run_end = 0.0
    rig.agent.observer.tick()  # has not heard of it yet
    end(rig)
    assert ended(run) == ("canceled", "stopped_by_user")
