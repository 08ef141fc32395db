"""Ends and adoptions that fall between two steps of the agent."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta

import pytest

from apps.core.crypto import encrypt
from apps.engine.errors import EngineUnavailable
from apps.engine.types import Observation, Phase
from apps.runs import leases
from apps.runs.agent import reading, tail
from apps.runs.agent.agent import EXACT_ENOUGH
from apps.runs.agent.followed import Followed
from apps.runs.models import Attempt, Node, Run
from apps.spiders.models import Secret
from tests.apps.runs.agent.rig import Rig, items, lines


def ended(run: Run) -> tuple[str, str]:
    run.refresh_from_db()
    return run.state, run.reason


def test_what_a_run_writes_while_its_files_are_read_is_stored_even_when_it_ends_at_that_moment(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, attempt = rig.running()
    attempt.print("one")

    def read_and_end(followed: Followed) -> reading.Step:
        step = reading.read_step(followed)
        if attempt.observation.exit_code is None:
            attempt.print("two")
            attempt.emit({"n": 1})
            attempt.write_out(b"three without a newline")
            attempt.exit(0)
            rig.agent.observer.tick()
        return step

    monkeypatch.setattr(tail, "read_step", read_and_end)
    rig.finish()
    assert rig.station.data.is_set()  # the next step comes at once
    rig.finish()
    assert ended(run) == ("succeeded", "")
    assert lines(run) == ["one", "two", "three without a newline"]
    assert items(run) == [{"n": 1}]


def test_the_time_limit_holds_for_an_adopted_run(rig: Rig) -> None:
    run, attempt = rig.running(timeout_seconds=600)
    an_hour_ago = datetime.now(UTC) - timedelta(hours=1)
    Attempt.objects.filter(run_id=run.pk).update(started_at=an_hour_ago)
    Run.objects.filter(pk=run.pk).update(started_at=an_hour_ago, lease_until=None)
    second = rig.second()
    for _ in range(3):
        second.turn()
    assert attempt.asked == ["terminate"]
    assert ended(run) == ("timed_out", "run_timeout")


def test_an_adopted_run_is_not_read_before_its_secrets_are_known(rig: Rig) -> None:
    order = rig.order()
    secret = Secret.objects.create(
        project=order.project, label="password", ciphertext=encrypt("hunter2-hunter2"), created_at=datetime.now(UTC)
    )
    run, attempt = rig.running(version=order.version, project=order.project, secrets={"password": secret.pk})
    Run.objects.filter(pk=run.pk).update(lease_until=None)
    second = rig.second()
    second.pool.hold = True  # all starters are busy
    second.agent.dispatcher.tick()
    attempt.print("logging in with hunter2-hunter2")
    second.tail(2)
    assert lines(run) == []
    second.pool.let_go()
    second.tail()
    assert lines(run) == ["logging in with ***"]


def test_a_worker_that_was_frozen_before_it_made_the_container_does_not_run_it_a_second_time(rig: Rig) -> None:
    rig.pool.hold = True
    run = rig.request()
    rig.agent.dispatcher.tick()
    Run.objects.filter(pk=run.pk).update(lease_until=None)
    second = rig.second()
    second.agent.dispatcher.tick()
    rig.executor.attempt(run.pk).exit(0)
    second.finish()
    assert ended(run) == ("succeeded", "")
    rig.pool.let_go()
    assert [call for call, _name in rig.executor.calls].count("create") == 1
    assert rig.executor.attempts == {}


def test_a_container_made_while_its_run_was_called_off_is_removed_with_it(rig: Rig) -> None:
    run, attempt = rig.running()
    followed = rig.station.roster.get(run.pk)
    assert followed is not None
    followed.handle, followed.observation = None, Observation(Phase.MISSING)
    rig.finish()
    assert ended(run)[0] == "lost"
    assert rig.executor.attempts == {}
    assert not attempt.spec.run_dir.exists()


def test_what_a_second_worker_said_of_the_node_does_not_last(rig: Rig) -> None:
    rig = Rig(rig.home, rig.executor, report_every=0.0)
    Node.objects.update(trouble="It is starting up.")  # another one began, said so and died
    rig.agent.caretaker.tick()
    run, _attempt = rig.running()
    assert ended(run)[0] == "running"


def test_a_heartbeat_that_took_long_says_nothing_about_the_clock(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(_node: int, _worker: str) -> datetime:
        time.sleep(EXACT_ENOUGH.total_seconds())
        return datetime.now(UTC)

    rig.agent.beat()
    known = rig.station.skew
    monkeypatch.setattr(leases, "renew", late)
    rig.agent.beat()
    assert rig.station.skew == known


def test_a_container_that_a_run_has_just_found_again_is_not_removed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    run, attempt = rig.running()
    # Looked at just before the run, which had been given back, was claimed again.
    monkeypatch.setattr(rig.agent.caretaker, "_kept", lambda _ids: {})
    rig.agent.caretaker.reconcile()
    assert attempt.asked == []
    assert rig.executor.attempt(run.pk) is attempt


def test_the_folder_of_a_run_that_has_just_been_claimed_again_is_kept(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.executor.fail("start", EngineUnavailable("The engine does not answer."))
    run = rig.request()
    rig.agent.dispatcher.tick()
    folder = rig.config.runs_home / f"{run.pk}-1"
    os.utime(folder, (0, 0))
    rig.station.roster.drop(next(iter(rig.station.roster)))
    Run.objects.filter(pk=run.pk).update(state="queued", attempt=0)
    is_left_over = rig.agent.caretaker._is_left_over

    def and_then_it_is_claimed(run_id: int, attempt: int, **lock: bool) -> bool:
        answer = is_left_over(run_id, attempt, **lock)
        Run.objects.filter(pk=run.pk).update(state="starting", attempt=1)
        return answer

    monkeypatch.setattr(rig.agent.caretaker, "_is_left_over", and_then_it_is_claimed)
    rig.agent.caretaker.reconcile()
    assert folder.is_dir()
