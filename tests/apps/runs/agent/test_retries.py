"""Attempts one after the other, as an agent lives them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.utils import translation

from apps.engine.errors import CreateFailed
from apps.engine.executors.fake import FakeAttempt, FakeExecutor
from apps.runs import reasons, selectors, services, sweeps
from apps.runs.models import Attempt, Node, Run
from apps.runs.policies import Backoff, FailedItems, RetryPolicy
from tests.apps.runs.agent.rig import ALICE, Rig, items, lines
from tests.apps.runs.placed import kinds, make_due

KEEP = RetryPolicy(attempts=3, backoff=Backoff.FIXED, delay_seconds=60, infrastructure=1)
REPLACE = RetryPolicy(attempts=3, backoff=Backoff.FIXED, delay_seconds=60, items=FailedItems.REPLACE)
CODES = {
    "20": {"success": True, "meaning": {"en": "nothing new", "zh-hans": "没有新内容"}},
    "21": {"success": False, "meaning": {"en": "the site is closed"}},
}


def next_attempt(rig: Rig, run: Run) -> FakeAttempt:
    """Its time comes, and a node takes it."""
    make_due(run)
    rig.agent.dispatcher.tick()
    run.refresh_from_db()
    return rig.executor.attempt(run.pk, run.attempt)


def fail(rig: Rig, run: Run, attempt: FakeAttempt, code: int = 1) -> None:
    attempt.exit(code)
    rig.finish()
    run.refresh_from_db()


def test_a_second_attempt_goes_on_with_the_lines_and_items_of_the_run(rig: Rig) -> None:
    run, first = rig.running(retry=KEEP)
    first.print("one", "two")
    first.emit({"n": 1})
    first.emit({"done": 1}, "progress")
    first.emit({"pages": 3}, "stat")
    fail(rig, run, first)
    assert (run.state, rig.executor.attempts) == ("retry_wait", {})
    assert not first.spec.run_dir.exists()
    second = next_attempt(rig, run)
    assert (run.state, run.attempt, second.spec.attempt) == ("running", 2, 2)
    assert (run.stats, run.progress) == ({}, None)
    second.print("three")
    second.emit({"n": 2})
    second.emit({"files": 1}, "stat")
    second.exit(0)
    rig.finish()
    run.refresh_from_db()
    assert (run.state, run.lines, run.items, run.stats) == ("succeeded", 3, 2, {"files": 1})
    assert lines(run) == ["one", "two", "three"]
    assert items(run) == [{"n": 1}, {"n": 2}]
    rows = Attempt.objects.filter(run=run).order_by("number")
    assert [(row.exit_code, row.lines, row.items) for row in rows] == [(1, 2, 1), (0, 1, 1)]
    assert [row.infrastructure for row in rows] == [False, False]


def test_the_agent_starts_what_is_due_in_the_same_look(rig: Rig) -> None:
    run, first = rig.running(retry=KEEP)
    fail(rig, run, first)
    rig.agent.dispatcher.tick()
    run.refresh_from_db()
    assert run.state == "retry_wait"
    next_attempt(rig, run)
    assert kinds(run)[-3:] == ["queued", "starting", "running"]


def test_replaced_items_are_neither_shown_nor_counted_on_the_live_page(rig: Rig) -> None:
    run, first = rig.running(retry=REPLACE)
    for number in range(3):
        first.emit({"n": number})
    fail(rig, run, first)
    second = next_attempt(rig, run)
    followed = rig.station.roster.get(run.pk)
    assert followed is not None
    assert followed.position.items - followed.items_hidden == 0
    second.emit({"n": 9})
    second.exit(0)
    rig.finish()
    run.refresh_from_db()
    assert (run.items, run.items_discarded) == (1, 3)
    assert [item.data for item in selectors.item_page(run)] == [{"n": 9}]


def test_each_attempt_has_the_whole_time_of_its_own_limit(rig: Rig) -> None:
    run, first = rig.running(retry=KEEP, timeout_seconds=600, total_seconds=3600)
    Attempt.objects.filter(run=run).update(started_at=datetime.now(UTC) - timedelta(seconds=599))
    fail(rig, run, first)
    next_attempt(rig, run)
    followed = rig.station.roster.get(run.pk)
    assert followed is not None
    rows = Attempt.objects.filter(run=run).order_by("number")
    assert rows[1].started_at is not None
    assert rows[1].started_at > datetime.now(UTC) - timedelta(seconds=60)
    assert run.total_deadline_at is not None
    assert run.started_at is not None
    assert run.total_deadline_at - run.started_at == timedelta(hours=1)


def test_what_cannot_start_is_tried_again_under_the_budget_for_machines(rig: Rig) -> None:
    rig.executor.fail("create", CreateFailed("No space left on device."))
    run = rig.request(retry=KEEP)
    rig.turn()
    run.refresh_from_db()
    assert (run.state, run.reason) == ("retry_wait", "create_failed")
    assert "No space left" in reasons.sentence(run)
    rig.executor.fail("create", None)
    next_attempt(rig, run).exit(0)
    rig.finish()
    run.refresh_from_db()
    assert run.state == "succeeded"


def test_a_stop_while_it_waits_for_its_next_attempt_leaves_nothing_to_start(rig: Rig) -> None:
    run, first = rig.running(retry=KEEP)
    fail(rig, run, first)
    services.request_stop(run=run, by=ALICE, now=datetime.now(UTC))
    make_due(run)
    rig.turn()
    run.refresh_from_db()
    assert (run.state, rig.executor.attempts) == ("canceled", {})


def test_a_limit_that_passed_while_no_worker_lived_is_enforced_by_who_adopts(rig: Rig) -> None:
    run, attempt = rig.running(retry=KEEP, timeout_seconds=60)
    late = datetime.now(UTC) - timedelta(seconds=60 + sweeps.LATE_SECONDS + 60)
    Attempt.objects.filter(run=run).update(started_at=late)
    sweeps.stop_overdue(now=datetime.now(UTC))
    Run.objects.filter(pk=run.pk).update(lease_until=late)
    second = rig.second()
    second.agent.dispatcher.tick()
    second.finish()
    second.finish()
    run.refresh_from_db()
    assert attempt.asked == ["terminate"]
    assert (run.state, run.reason) == ("retry_wait", "run_timeout")


def test_a_drained_run_goes_on_elsewhere_and_says_why(rig: Rig) -> None:
    run, attempt = rig.running(retry=KEEP)
    Node.objects.update(cordoned_at=datetime.now(UTC), drain_until=datetime.now(UTC) - timedelta(hours=1))
    sweeps.stop_drained(now=datetime.now(UTC))
    for _ in range(2):
        rig.turn()
    run.refresh_from_db()
    assert attempt.asked == ["terminate"]
    assert (run.state, run.reason) == ("retry_wait", "node_drained")
    assert reasons.sentence(run) == "Ended because node node-a was to be empty by then."
    assert Attempt.objects.get(run=run).infrastructure


def test_a_code_that_means_success_is_one_and_says_what_it_means(rig: Rig) -> None:
    run, attempt = rig.running(exit_codes=CODES)
    fail(rig, run, attempt, 20)
    assert (run.state, run.exit_code) == ("succeeded", 20)
    assert reasons.sentence(run) == "It ended with exit code 20: nothing new."
    with translation.override("zh-hans"):
        assert "没有新内容" in reasons.sentence(run)


def test_a_failure_says_what_its_code_means(rig: Rig) -> None:
    run, attempt = rig.running(exit_codes=CODES)
    fail(rig, run, attempt, 21)
    assert (run.state, run.reason) == ("failed", "exit_nonzero")
    assert reasons.sentence(run) == "It ended with exit code 21: the site is closed."


def test_a_lost_node_that_comes_back_is_rid_of_what_was_left_there(rig: Rig, tmp_path: Path) -> None:
    run, left = rig.running(retry=KEEP)
    left.print("written before the silence")
    rig.tail()
    silent = datetime.now(UTC) - timedelta(seconds=300)
    Node.objects.update(heartbeat_at=silent)
    sweeps.give_up_on_silent_nodes(now=datetime.now(UTC), wait=lambda _seconds: None)
    run.refresh_from_db()
    assert run.state == "retry_wait"

    elsewhere = Rig(tmp_path / "b", FakeExecutor(), "w9", node="node-b")
    Node.objects.filter(name="node-a").update(heartbeat_at=silent, cordoned_at=silent)
    make_due(run)
    (tmp_path / "b" / "code" / run.spec["code"]).mkdir(parents=True)
    elsewhere.agent.dispatcher.tick()
    run.refresh_from_db()
    assert (run.state, run.attempt, run.node and run.node.name) == ("running", 2, "node-b")

    # The silent node is back, and its agent still believes that the run is its own.
    left.print("written during the silence")
    rig.finish()
    rig.agent.dispatcher.tick()
    assert rig.station.roster.get(run.pk) is None
    rig.agent.caretaker.reconcile()
    assert rig.executor.attempts == {}
    elsewhere.executor.attempt(run.pk, 2).exit(0)
    elsewhere.finish()
    run.refresh_from_db()
    assert (run.state, lines(run)) == ("succeeded", ["written before the silence"])
