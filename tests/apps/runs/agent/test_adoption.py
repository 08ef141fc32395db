"""A worker dies, another one of the node takes over: the same attempt, in whatever phase it is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from apps.engine.executors.fake import FakeAttempt
from apps.engine.types import Phase
from apps.runs import services
from apps.runs.models import Attempt, Run, RunEvent
from tests.apps.runs.agent.rig import ALICE, Rig, ended, items, lines, orphan


def adopt(rig: Rig, run: Run) -> Rig:
    orphan(run)
    second = rig.second()
    second.turn()
    run.refresh_from_db()
    return second


def calls(rig: Rig, name: str) -> int:
    return [call for call, _name in rig.executor.calls].count(name)


def finish(second: Rig, run: Run, attempt: FakeAttempt) -> None:
    attempt.print("the last line")
    attempt.emit({"n": 1})
    attempt.exit(0)
    second.finish()
    assert ended(run) == ("succeeded", "")
    assert (lines(run)[-1], items(run)) == ("the last line", [{"n": 1}])
    assert (run.attempt, run.token) == (1, 2)
    assert second.executor.attempts == {}
    assert list(RunEvent.objects.filter(run=run, kind="adopted").values_list("detail", flat=True)) == [
        {"from": "w1", "to": "w2"}
    ]


def created(rig: Rig) -> tuple[Run, FakeAttempt]:
    """A worker that died between the creation and the start."""
    run, attempt = rig.running()
    attempt.observation = type(attempt.observation)(Phase.CREATED)
    Run.objects.filter(pk=run.pk).update(state="starting", started_at=None)
    Attempt.objects.filter(run_id=run.pk).update(started_at=None)
    return run, attempt


def test_claimed_and_not_created(rig: Rig) -> None:
    rig.pool.hold = True
    run = rig.request()
    rig.agent.dispatcher.tick()
    second = adopt(rig, run)
    assert (run.state, calls(rig, "create"), calls(rig, "start")) == ("running", 1, 1)
    finish(second, run, rig.executor.attempt(run.pk))


def test_created_and_not_started(rig: Rig) -> None:
    run, attempt = created(rig)
    second = adopt(rig, run)
    assert (run.state, calls(rig, "create"), calls(rig, "start")) == ("running", 1, 2)
    finish(second, run, attempt)


def test_started_and_not_written_down(rig: Rig) -> None:
    run, attempt = rig.running()
    Run.objects.filter(pk=run.pk).update(state="starting", started_at=None)
    Attempt.objects.filter(run_id=run.pk).update(started_at=None)
    second = adopt(rig, run)
    assert (run.state, calls(rig, "create"), calls(rig, "start")) == ("running", 1, 1)
    finish(second, run, attempt)


def test_running(rig: Rig) -> None:
    run, attempt = rig.running()
    attempt.print("stored by the first one")
    rig.tail()
    attempt.print("written while nobody looked")
    second = adopt(rig, run)
    assert run.state == "running"
    finish(second, run, attempt)
    assert lines(run) == ["stored by the first one", "written while nobody looked", "the last line"]


def test_ended_and_not_drained(rig: Rig) -> None:
    run, attempt = rig.running()
    attempt.print("one", "two")
    rig.tail()
    attempt.print("three")
    attempt.emit({"n": 1})
    attempt.exit(3)
    adopt(rig, run)
    assert ended(run) == ("failed", "exit_nonzero")
    assert (lines(run), items(run), run.exit_code) == (["one", "two", "three"], [{"n": 1}], 3)
    assert rig.executor.attempts == {}


def test_ended_before_it_was_written_down_that_it_runs(rig: Rig) -> None:
    run, attempt = rig.running()
    Run.objects.filter(pk=run.pk).update(state="starting", started_at=None)
    Attempt.objects.filter(run_id=run.pk).update(started_at=None)
    attempt.print("quick")
    attempt.exit(0)
    adopt(rig, run)
    assert ended(run) == ("succeeded", "")
    assert (lines(run), calls(rig, "start")) == (["quick"], 1)
    assert run.started_at is not None


@pytest.mark.parametrize("told", [True, False])
def test_being_stopped(rig: Rig, told: bool) -> None:
    run, attempt = rig.running(grace_seconds=600)
    attempt.ignores_term = True
    services.request_stop(run=run, by=ALICE, now=datetime.now(UTC))
    if told:
        rig.turn()
    second = adopt(rig, run)
    assert (run.state, attempt.asked) == ("stopping", ["terminate"] * (2 if told else 1))
    attempt.exit(143)
    second.finish()
    assert ended(run) == ("canceled", "stopped_by_user")


def test_stopped_before_it_was_created(rig: Rig) -> None:
    rig.pool.hold = True
    run = rig.request()
    rig.agent.dispatcher.tick()
    services.request_stop(run=run, by=ALICE, now=datetime.now(UTC))
    adopt(rig, run)
    assert (ended(run), calls(rig, "create")) == (("canceled", "stopped_by_user"), 0)


def test_stopped_between_creation_and_start(rig: Rig) -> None:
    run, _attempt = created(rig)
    services.request_stop(run=run, by=ALICE, now=datetime.now(UTC))
    adopt(rig, run)
    assert ended(run) == ("canceled", "stopped_by_user")
    assert calls(rig, "start") == 1  # the one of before
    assert rig.executor.attempts == {}


def test_its_end_was_stored_and_the_rest_is_cleared_away(rig: Rig) -> None:
    run, attempt = rig.running()
    attempt.exit(0)
    rig.agent.ended = rig.agent.tail.ended = lambda _followed: None  # type: ignore[method-assign]
    rig.finish()
    assert ended(run) == ("succeeded", "")
    second = rig.second()
    second.agent.caretaker.reconcile()
    assert rig.executor.attempts == {}


def test_an_engine_that_was_started_anew_is_the_reason_of_its_own(rig: Rig) -> None:
    run, attempt = rig.running()
    attempt.exit(137, engine_restarted=True)
    rig.finish()
    assert ended(run) == ("failed", "engine_restarted")
