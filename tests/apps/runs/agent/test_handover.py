"""Ends and adoptions that fall between two steps of the agent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apps.core.crypto import encrypt
from apps.runs.agent import reading, tail
from apps.runs.agent.followed import Followed
from apps.runs.models import Attempt, Run
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
