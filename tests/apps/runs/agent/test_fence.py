"""A worker whose lease was lost while it was frozen wakes up."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import psycopg
import pytest
from django.db import OperationalError

from apps.engine.errors import EngineUnavailable
from apps.runs import leases, services
from apps.runs.agent.station import ACT_WITHIN
from apps.runs.models import Run, RunEvent
from tests.apps.runs.agent.rig import ALICE, Rig, ended, lines, orphan


def taken_over(rig: Rig, run: Run) -> Rig:
    """By another worker, while this one stood still for a minute."""
    for followed in rig.station.roster:
        followed.ours_at -= 60
    orphan(run)
    second = rig.second()
    second.turn()
    return second


def fenced(run: Run) -> list[dict[str, str]]:
    return list(RunEvent.objects.filter(run=run, kind="fenced").values_list("detail", flat=True))


@pytest.mark.parametrize("limit", ["run_end", "total_end", "last_sign"])
def test_it_does_not_end_a_run_whose_limit_seems_over(rig: Rig, limit: str) -> None:
    run, attempt = rig.running(idle_seconds=30)
    rig.tail()
    second = taken_over(rig, run)
    followed = rig.station.roster.get(run.pk)
    assert followed is not None
    setattr(followed.clocks, limit, 0.0)
    rig.agent.observer.tick()
    rig.agent.observer.tick()
    assert (attempt.asked, ended(run)[0]) == ([], "running")
    assert fenced(run) == [{"from": "w1", "to": "w2"}]
    attempt.exit(0)
    second.finish()
    assert ended(run) == ("succeeded", "")


def test_it_carries_out_no_stop_that_is_another_ones_by_now(rig: Rig) -> None:
    run, attempt = rig.running(grace_seconds=0)
    attempt.ignores_term = True
    services.request_stop(run=run, by=ALICE, now=datetime.now(UTC))
    rig.turn()
    assert attempt.asked == ["terminate"]
    taken_over(rig, run)
    rig.agent.observer.tick()
    assert attempt.asked == ["terminate", "terminate"]  # the second one is the adopter's
    assert fenced(run) == [{"from": "w1", "to": "w2"}]


def test_it_does_not_thaw_what_another_one_has_frozen(rig: Rig) -> None:
    run, attempt = rig.running()
    second = taken_over(rig, run)
    services.request_pause(run=run, by=ALICE, now=datetime.now(UTC))
    second.turn()
    rig.agent.observer.tick()
    assert (attempt.asked, ended(run)[0]) == (["pause"], "paused")


def test_it_says_so_once_however_it_finds_out(rig: Rig) -> None:
    run, attempt = rig.running()
    taken_over(rig, run)
    attempt.print("one")
    rig.tail()
    rig.turn()
    rig.turn()
    assert lines(run) == []
    assert fenced(run) == [{"from": "w1", "to": "w2"}]
    assert len(rig.station.roster) == 0


def test_a_run_given_back_to_the_queue_is_not_a_loss(rig: Rig) -> None:
    rig.executor.fail("create", EngineUnavailable("The engine does not answer."))
    run = rig.request()
    rig.turn()
    rig.turn()
    assert ended(run)[0] == "queued"
    assert fenced(run) == []


def test_without_the_database_it_acts_for_a_while_and_then_no_more(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_run_id: int, _token: int) -> bool:
        raise OperationalError from psycopg.OperationalError("away")

    run, attempt = rig.running(grace_seconds=0)
    attempt.ignores_term = True
    services.request_stop(run=run, by=ALICE, now=datetime.now(UTC))
    rig.turn()
    followed = rig.station.roster.get(run.pk)
    assert followed is not None
    followed.ours_at -= 60
    monkeypatch.setattr(leases, "is_ours", away)
    rig.station.heard_at = time.monotonic() - ACT_WITHIN - 1
    rig.agent.observer.tick()
    assert attempt.asked == ["terminate"]
    rig.station.heard_at = time.monotonic() - ACT_WITHIN + 5
    rig.agent.observer.tick()
    assert attempt.asked == ["terminate", "kill"]
