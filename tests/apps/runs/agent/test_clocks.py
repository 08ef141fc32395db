"""Time limits as plain numbers."""

from __future__ import annotations

from apps.engine.types import Limits
from apps.runs.agent.clocks import Clocks


def running(**limits: int) -> Clocks:
    clocks = Clocks.of(Limits(**{"run_seconds": 100, **limits}))  # type: ignore[arg-type]
    clocks.begin(1000.0)
    clocks.caught_up = True
    return clocks


def test_a_run_may_run_as_long_as_its_limit_says() -> None:
    clocks = running()
    assert clocks.exceeded(1099.9) == ""
    assert clocks.exceeded(1100.0) == "run_timeout"
    assert clocks.seconds_left(1090.0) == 10.0


def test_silence_counts_from_the_start_and_from_each_sign_of_life() -> None:
    clocks = running(idle_seconds=20)
    assert clocks.exceeded(1020.0) == "idle_timeout"
    clocks.heard(1015.0)
    assert clocks.exceeded(1020.0) == ""
    assert clocks.exceeded(1035.0) == "idle_timeout"


def test_silence_is_not_judged_before_the_backlog_is_read() -> None:
    clocks = running(idle_seconds=20)
    clocks.caught_up = False
    assert clocks.exceeded(1050.0) == ""


def test_the_limit_of_all_attempts_holds_before_the_next_one_has_started() -> None:
    clocks = Clocks.of(Limits())
    clocks.total_end = 500.0
    assert clocks.exceeded(500.0) == "total_timeout"


def test_no_limit_counts_the_time_of_a_pause() -> None:
    clocks = running(idle_seconds=20)
    clocks.total_end = 1050.0
    clocks.pause(1010.0)
    assert clocks.exceeded(9000.0) == ""
    assert clocks.seconds_left(9000.0) is None
    clocks.resume(1510.0)
    assert clocks.exceeded(1519.9) == ""
    assert clocks.exceeded(1520.0) == "idle_timeout"
    clocks.heard(1545.0)
    assert clocks.exceeded(1550.0) == "total_timeout"
    clocks.total_end = None
    clocks.heard(1599.0)
    assert clocks.exceeded(1599.9) == ""
    assert clocks.exceeded(1600.0) == "run_timeout"


def test_what_is_read_during_a_pause_is_no_sign_from_the_future() -> None:
    clocks = running(idle_seconds=20)
    clocks.pause(1010.0)
    clocks.heard(1400.0)
    clocks.resume(1500.0)
    assert clocks.last_sign == 1500.0


def test_an_adopted_run_has_the_pauses_of_before_on_top() -> None:
    clocks = Clocks.of(Limits(run_seconds=100))
    clocks.begin(1000.0, paused_seconds=30.0)
    assert clocks.exceeded(1129.0) == ""
    assert clocks.exceeded(1130.0) == "run_timeout"


def test_a_pause_has_an_end() -> None:
    clocks = running(pause_seconds=60)
    assert not clocks.pause_is_over(5000.0)
    clocks.pause(1010.0)
    assert not clocks.pause_is_over(1069.0)
    assert clocks.pause_is_over(1070.0)
