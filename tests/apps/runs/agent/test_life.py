"""A run's life under an agent, step by step."""

from __future__ import annotations

import os
import random
import time
from datetime import UTC, datetime, timedelta

import pytest

from apps.engine.errors import BuildFailed, CreateFailed, EngineError, EngineUnavailable, ImageMissing
from apps.runs import leases, reasons, services
from apps.runs.models import Attempt, LogChunk, ResourceSample, Run
from apps.runs.states import State
from tests.apps.runs.agent.rig import ALICE, Rig, items, lines


def ended(run: Run) -> tuple[str, str]:
    run.refresh_from_db()
    return run.state, run.reason


def test_a_run_is_started_followed_and_ended_with_its_last_bytes(rig: Rig) -> None:
    run, attempt = rig.running()
    assert (run.state, run.attempt, run.token) == ("running", 1, 1)
    attempt.print("one", "ERROR two")
    attempt.emit({"n": 1})
    rig.tail()
    assert lines(run) == ["one", "ERROR two"]
    attempt.write_out(b"the last line has no newline")
    attempt.emit({"n": 2})
    attempt.exit(0)
    rig.finish()
    assert ended(run) == ("succeeded", "")
    assert lines(run) == ["one", "ERROR two", "the last line has no newline"]
    assert items(run) == [{"n": 1}, {"n": 2}]
    assert (run.lines, run.items, run.errors, run.first_error_line, run.exit_code) == (3, 2, 1, 2, 0)
    assert run.finished_at is not None
    assert run.started_at is not None
    assert run.finished_at >= run.started_at


def test_after_the_end_nothing_is_left_on_the_engine_or_the_disk(rig: Rig) -> None:
    run, attempt = rig.running()
    for number in range(5):
        attempt.print(f"line {number}")
        rig.tail()
    assert LogChunk.objects.filter(run_id=run.pk).count() == 5
    attempt.exit(3)
    rig.finish()
    assert ended(run) == ("failed", "exit_nonzero")
    assert reasons.sentence(run) == "It ended with exit code 3."
    assert LogChunk.objects.filter(run_id=run.pk).count() == 1
    assert lines(run) == [f"line {number}" for number in range(5)]
    assert not attempt.spec.run_dir.exists()
    assert rig.executor.attempts == {}


@pytest.mark.parametrize(
    ("call", "error", "reason"),
    [
        ("environment", BuildFailed("No such package: nope."), "image_build_failed"),
        ("environment", ImageMissing("There is no base image."), "image_missing"),
        ("create", CreateFailed("The name is taken."), "create_failed"),
        ("start", CreateFailed("No such program."), "create_failed"),
    ],
)
def test_what_cannot_start_fails_with_the_engines_words(rig: Rig, call: str, error: EngineError, reason: str) -> None:
    rig.executor.fail(call, error)
    run = rig.request()
    rig.turn()
    assert ended(run) == ("failed", reason)
    assert str(error) in reasons.sentence(run)
    assert rig.executor.attempts == {}


def test_code_that_is_not_there_is_a_reason_of_its_own(rig: Rig) -> None:
    run = rig.request()
    (rig.home / "code" / run.spec["code"]).rmdir()
    rig.turn()
    assert ended(run) == ("failed", "code_missing")


def test_a_run_goes_back_to_the_queue_when_the_engine_is_away(rig: Rig) -> None:
    rig.executor.fail("create", EngineUnavailable("The engine does not answer."))
    run = rig.request()
    rig.turn()
    run.refresh_from_db()
    assert (run.state, run.attempt, run.node) == ("queued", 0, None)
    assert not Attempt.objects.filter(run=run).exists()
    assert rig.station.trouble == "The engine does not answer."
    rig.turn()
    assert ended(run)[0] == "queued"
    rig.executor.fail("create", None)
    rig.agent.caretaker.tick()
    rig.turn()
    assert ended(run)[0] == "running"


def test_a_hung_engine_ends_no_run(rig: Rig) -> None:
    run, attempt = rig.running()
    rig.executor.fail("inspect", EngineUnavailable("The engine does not answer."))
    attempt.print("still here")
    rig.turn()
    assert ended(run)[0] == "running"
    assert lines(run) == ["still here"]
    assert "does not answer" in rig.station.trouble


def test_a_stop_asks_waits_and_kills(rig: Rig) -> None:
    run, attempt = rig.running(grace_seconds=0)
    attempt.ignores_term = True
    services.request_stop(run=run, by=ALICE, now=datetime.now(UTC))
    rig.turn()
    assert (attempt.asked, ended(run)[0]) == (["terminate"], "stopping")
    rig.turn()
    rig.turn()
    assert attempt.asked == ["terminate", "kill"]
    assert ended(run) == ("canceled", "stopped_by_user")
    assert reasons.sentence(run).startswith("Stopped by alice. It did not end by itself")


def test_a_spider_that_ends_well_on_term_was_stopped_all_the_same(rig: Rig) -> None:
    run, attempt = rig.running()
    services.request_stop(run=run, by=ALICE, now=datetime.now(UTC))
    rig.agent.dispatcher.tick()
    attempt.ignores_term = True
    rig.agent.observer.tick()
    attempt.print("flushed")
    attempt.exit(0)
    rig.finish()
    assert ended(run) == ("canceled", "stopped_by_user")
    assert lines(run) == ["flushed"]


def test_a_run_stopped_while_it_is_built_is_over_at_once(rig: Rig) -> None:
    rig.pool.hold = True
    run = rig.request()
    rig.agent.dispatcher.tick()
    services.request_stop(run=run, by=ALICE, now=datetime.now(UTC))
    rig.turn()
    assert ended(run) == ("canceled", "stopped_by_user")
    rig.pool.let_go()
    assert rig.executor.attempts == {}


def test_the_time_limit_ends_a_run_with_its_words(rig: Rig) -> None:
    run, attempt = rig.running(timeout_seconds=600)
    followed = rig.station.roster.get(run.pk)
    assert followed is not None
    followed.clocks.run_end = 0.0
    rig.turn()
    assert attempt.asked == ["terminate"]
    rig.turn()
    assert ended(run) == ("timed_out", "run_timeout")
    assert reasons.sentence(run) == "Stopped after the time limit of 10 minutes."


def test_a_container_that_vanished_is_lost_and_never_started_again(rig: Rig) -> None:
    run, attempt = rig.running()
    attempt.print("before")
    rig.executor.attempts.clear()
    rig.turn()
    assert ended(run) == ("lost", "container_vanished")
    assert lines(run) == ["before"]
    assert rig.executor.attempts == {}


def test_a_run_that_writes_too_fast_is_held_back_until_it_is_stored(rig: Rig) -> None:
    rig = Rig(rig.home, rig.executor, most_behind=1000, caught_up=100)
    _run, attempt = rig.running()
    followed = next(iter(rig.station.roster))
    followed.behind = 5000
    rig.agent.observer.tick()
    assert attempt.asked == ["pause"]
    followed.behind = 0
    rig.agent.observer.tick()
    assert attempt.asked == ["pause", "resume"]


def test_another_worker_takes_over_where_the_first_stopped(rig: Rig) -> None:
    run, attempt = rig.running()
    attempt.print("one")
    rig.tail()
    Run.objects.filter(pk=run.pk).update(lease_until=datetime.now(UTC) - timedelta(seconds=1))
    second = rig.second()
    attempt.print("two")
    second.agent.dispatcher.tick()
    run.refresh_from_db()
    assert (run.token, run.worker, run.attempt, run.state) == (2, "w2", 1, "running")
    attempt.print("three")
    second.tail()
    rig.tail()
    attempt.exit(0)
    second.finish()
    assert lines(run) == ["one", "two", "three"]
    assert ended(run) == ("succeeded", "")


def test_who_has_lost_its_lease_writes_nothing_and_touches_nothing(rig: Rig) -> None:
    run, attempt = rig.running()
    second = rig.second()
    Run.objects.filter(pk=run.pk).update(lease_until=None)
    second.agent.dispatcher.tick()
    attempt.print("one")
    rig.tail()
    assert lines(run) == []
    assert len(rig.station.roster) == 0
    attempt.exit(0)
    rig.finish()
    assert ended(run)[0] == "running"
    second.finish()
    assert ended(run)[0] == "succeeded"


def test_a_claim_whose_worker_died_before_the_container_is_started_by_the_next(rig: Rig) -> None:
    rig.pool.hold = True
    run = rig.request()
    rig.agent.dispatcher.tick()
    Run.objects.filter(pk=run.pk).update(lease_until=None)  # it died before its first heartbeat
    second = rig.second()
    second.agent.dispatcher.tick()
    run.refresh_from_db()
    assert (run.state, run.attempt) == ("running", 1)
    assert len(rig.executor.attempts) == 1


def test_leaving_lets_the_next_worker_take_over_at_once(rig: Rig) -> None:
    run, _attempt = rig.running()
    leases.renew(rig.station.node.pk, "w1")
    rig.agent.leave()
    second = rig.second()
    second.agent.dispatcher.tick()
    run.refresh_from_db()
    assert run.worker == "w2"


def test_containers_of_runs_that_are_over_are_removed(rig: Rig) -> None:
    run, attempt = rig.running()
    services.move(
        run_id=run.pk, to=State.LOST, frm=[State.RUNNING], now=datetime.now(UTC), actor=ALICE, reason="node_lost"
    )
    rig.agent.dispatcher.tick()
    rig.agent.caretaker.reconcile()
    assert attempt.asked == ["kill"]
    assert rig.executor.attempts == {}
    assert ended(run) == ("lost", "node_lost")


def test_use_is_sampled_and_the_peak_kept(rig: Rig) -> None:
    run, attempt = rig.running()
    rig.agent.sampler.tick()
    run.refresh_from_db()
    assert ResourceSample.objects.filter(run=run).count() == 1
    assert run.memory_peak_bytes == attempt.spec.limits.memory_bytes // 4


@pytest.mark.parametrize(
    "damage",
    [{"limits": None}, {"limits": {"memory_mb": "much"}}, {"command": []}, {"parameters": 3}, {"secrets": {"x": 999}}],
)
def test_an_order_that_cannot_be_read_fails_and_the_next_run_starts(rig: Rig, damage: dict[str, object]) -> None:
    broken = rig.request(priority=1)
    Run.objects.filter(pk=broken.pk).update(spec={**broken.spec, **damage})
    behind = rig.request()
    rig.turn()
    assert ended(broken) == ("failed", "param_error")
    assert ended(behind)[0] == "running"


def test_what_does_not_start_in_time_is_given_up_with_words(rig: Rig) -> None:
    rig.pool.hold = True
    run = rig.request()
    rig.agent.dispatcher.tick()
    followed = rig.station.roster.get(run.pk)
    assert followed is not None
    followed.ready_at -= 121
    rig.agent.observer.tick()
    rig.turn()
    assert ended(run) == ("timed_out", "start_timeout")
    assert reasons.sentence(run) == "It had not started after 2 minutes."


def test_a_clock_that_is_off_forbids_starts_and_cuts_nothing_short(rig: Rig) -> None:
    run, _attempt = rig.running(timeout_seconds=60)
    rig.station.skew = timedelta(hours=3)
    rig.agent.caretaker.tick()
    waiting = rig.request()
    rig.turn()
    assert "Its clock differs from the database's by 10800 s." in rig.station.trouble
    assert ended(run)[0] == "running"
    assert ended(waiting)[0] == "queued"


def test_a_place_is_free_for_the_next_run_as_soon_as_one_ends(rig: Rig) -> None:
    rig = Rig(rig.home, rig.executor, slots=1)
    _first, attempt = rig.running()
    second = rig.request()
    rig.turn()
    assert ended(second)[0] == "queued"
    attempt.exit(0)
    rig.turn()
    assert rig.station.work.is_set()
    rig.turn()
    assert ended(second)[0] == "running"


def test_a_folder_left_behind_by_a_dead_worker_is_cleared(rig: Rig) -> None:
    run, attempt = rig.running()
    services.move(run_id=run.pk, to=State.LOST, frm=[State.RUNNING], now=datetime.now(UTC), actor=ALICE)
    rig.agent.dispatcher.tick()
    old = time.time() - 3600
    os.utime(attempt.spec.run_dir, (old, old))
    rig.agent.caretaker.reconcile()
    assert not attempt.spec.run_dir.exists()


def test_twenty_workers_that_die_one_after_the_other_store_each_item_once(rig: Rig) -> None:
    run, attempt = rig.running()
    dice = random.Random(11)  # noqa: S311
    written = 0
    for number in range(20):
        worker = Rig(rig.home, rig.executor, f"w{number + 2}", poison_deaths=0)
        Run.objects.filter(pk=run.pk).update(lease_until=None)
        worker.agent.dispatcher.tick()
        for _ in range(dice.randint(1, 5)):
            for _ in range(dice.randint(0, 30)):
                written += 1
                attempt.write_out(f"line {written}\n".encode())
                attempt.emit({"n": written})
            worker.tail(dice.randint(0, 2))
        rig.tail()  # the first worker is awake again and knows nothing of it all
    attempt.exit(0)
    worker.finish()
    assert ended(run) == ("succeeded", "")
    assert lines(run) == [f"line {number}" for number in range(1, written + 1)]
    assert items(run) == [{"n": number} for number in range(1, written + 1)]
    assert run.token == 21
