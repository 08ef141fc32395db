"""The end of an attempt: closed and decided in one transaction, fresh for the next."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.models.base import ModelState

from apps.core.actors import Actor
from apps.runs import finishing, leases, selectors, services, sweeps
from apps.runs.finishing import Ending
from apps.runs.ingest import Batch, Position, store_batches
from apps.runs.models import Attempt, Run, RunEvent
from apps.runs.policies import Backoff, FailedItems, RetryPolicy
from apps.runs.states import State
from tests.apps.runs.placed import (
    AGENT,
    EXIT_1,
    NODE_LOST,
    WELL,
    a_run,
    ago,
    attempts,
    begin_next,
    finish,
    kinds,
    last_event,
    make_due,
)

ALICE = Actor("user", "alice")
TWICE = RetryPolicy(attempts=2, backoff=Backoff.FIXED, delay_seconds=60, jitter=0, infrastructure=1)
REPLACING = RetryPolicy(attempts=3, backoff=Backoff.FIXED, delay_seconds=0, items=FailedItems.REPLACE)
KEEPING = RetryPolicy(attempts=3, backoff=Backoff.FIXED, delay_seconds=0, items=FailedItems.KEEP)

pytestmark = pytest.mark.django_db


def test_a_failed_attempt_is_closed_and_its_run_waits_for_the_next() -> None:
    run = a_run(policy=TWICE, stop_cause="run_timeout", stop_requested_at=ago(3), paused_seconds=5)
    assert finish(run) == State.RETRY_WAIT
    (attempt,) = attempts(run)
    assert (attempt.reason, attempt.exit_code, attempt.infrastructure) == ("exit_nonzero", 1, False)
    assert attempt.finished_at is not None
    assert (run.state, run.reason, run.token, run.node, run.worker) == ("retry_wait", "exit_nonzero", 2, None, "")
    assert (run.stop_cause, run.stop_requested_at, run.paused_seconds, run.finished_at) == ("", None, 0, None)
    assert run.retry_at is not None
    assert abs((run.retry_at - datetime.now(UTC)).total_seconds() - 60) < 5


def test_the_history_says_why_it_is_tried_again_and_when() -> None:
    run = a_run(policy=TWICE)
    finish(run)
    event = last_event(run)
    assert run.retry_at is not None
    assert (event.from_state, event.to_state, event.reason) == ("running", "retry_wait", "exit_nonzero")
    assert event.detail == {
        "exit_code": 1,
        "failures": 1,
        "attempts": 2,
        "infrastructure": False,
        "delay_seconds": 60,
        "retry_at": run.retry_at.isoformat(timespec="seconds"),
    }


def test_the_last_attempt_ends_the_run_and_history_says_that_all_are_used() -> None:
    run = a_run(policy=TWICE)
    finish(run)
    make_due(run)
    sweeps.requeue_due(now=datetime.now(UTC))
    begin_next(run)
    assert finish(run) == State.FAILED
    assert kinds(run) == ["retry_wait", "queued", "running", "exhausted", "failed"]
    note = RunEvent.objects.get(run=run, kind="exhausted")
    assert note.detail == {"failures": 2, "attempts": 2, "infrastructure": False}
    assert (run.reason, run.exit_code, run.repair_due) == ("exit_nonzero", 1, False)


def test_the_two_budgets_are_counted_apart() -> None:
    run = a_run(policy=TWICE)
    for ending, expected in ((NODE_LOST, "retry_wait"), (EXIT_1, "retry_wait"), (NODE_LOST, "lost")):
        assert finish(run, ending) == expected
        if expected == "retry_wait":
            make_due(run)
            sweeps.requeue_due(now=datetime.now(UTC))
            begin_next(run)
    assert [attempt.infrastructure for attempt in attempts(run)] == [True, False, True]


@pytest.mark.parametrize("ending", [EXIT_1, WELL])
def test_no_end_is_before_its_start_although_the_start_was_written_down_late(ending: Ending) -> None:
    run = a_run()
    late = datetime.now(UTC)
    Run.objects.filter(pk=run.pk).update(started_at=late)
    Attempt.objects.filter(run=run).update(started_at=late)
    finish(run, replace(ending, finished_at=late - timedelta(seconds=2)))
    assert (run.finished_at, attempts(run)[0].finished_at) == (late, late)


def test_success_is_over_at_once() -> None:
    run = a_run(policy=TWICE)
    assert finish(run, WELL) == State.SUCCEEDED
    assert attempts(run)[0].exit_code == 0


def test_an_old_token_or_attempt_ends_nothing() -> None:
    run = a_run(policy=TWICE)
    assert finish(run, token=0) is None
    assert finish(run, WELL, token=0) is None
    assert finish(run, attempt=7) is None
    assert (run.state, attempts(run)[0].finished_at) == ("running", None)


@pytest.mark.parametrize("ending", [EXIT_1, NODE_LOST, WELL])
def test_the_same_end_told_twice_is_told_once(ending: Ending) -> None:
    run = a_run(policy=TWICE)
    token = run.token
    finish(run, ending)
    before = kinds(run)
    assert finish(run, ending, token=token) is None
    assert kinds(run) == before


def test_a_person_s_stop_is_not_tried_again_although_the_spider_failed_before_it_was_told() -> None:
    run = a_run(policy=TWICE)
    services.request_stop(run=run, by=ALICE, now=datetime.now(UTC))
    assert finish(run) == State.FAILED


def test_a_stopped_run_that_waits_for_its_next_attempt_is_canceled_at_once() -> None:
    run = a_run(policy=TWICE)
    finish(run)
    services.request_stop(run=run, by=ALICE, now=datetime.now(UTC))
    make_due(run)
    assert sweeps.requeue_due(now=datetime.now(UTC)) == 0
    assert Run.objects.get(pk=run.pk).state == State.CANCELED


def test_only_a_run_that_failed_for_good_asks_for_its_repair() -> None:
    run = a_run(policy=TWICE, order={"repair_job": 7})
    finish(run)
    assert sweeps.runs_with_repair_due() == []
    make_due(run)
    sweeps.requeue_due(now=datetime.now(UTC))
    begin_next(run)
    finish(run)
    assert sweeps.runs_with_repair_due() == [run]
    sweeps.repair_done(run_id=run.pk)
    assert sweeps.runs_with_repair_due() == []
    canceled = a_run(order={"repair_job": 7})
    finish(canceled, Ending(State.CANCELED, "stopped_by_user", {}))
    assert sweeps.runs_with_repair_due() == []


def test_no_attempt_is_promised_past_the_limit_over_all_attempts() -> None:
    run = a_run(policy=TWICE, total_deadline_at=datetime.now(UTC) + timedelta(seconds=30))
    assert finish(run) == State.FAILED
    assert RunEvent.objects.get(run=run, kind="exhausted").detail["out_of_time"] is True


def test_an_order_that_cannot_be_read_still_ends() -> None:
    run = a_run()
    Run.objects.filter(pk=run.pk).update(spec=["broken"])
    assert finish(run, Ending(State.FAILED, "param_error", {})) == State.FAILED


# -- the next attempt ---------------------------------------------------------------------------------------------


def test_the_next_attempt_begins_without_what_the_last_one_left() -> None:
    run = a_run(policy=TWICE, stats={"pages": 4}, output={"file": "a"}, progress={"done": 3}, lines=9, items=4)
    first_start = run.started_at
    finish(run)
    assert run.stats == {"pages": 4}
    make_due(run)
    sweeps.requeue_due(now=datetime.now(UTC))
    begin_next(run)
    assert (run.stats, run.output, run.progress, run.exit_code) == ({}, {}, None, None)
    assert (run.reason, run.detail, run.retry_at) == ("", {}, None)
    assert (run.lines, run.items, run.started_at) == (9, 4, first_start)
    assert attempts(run)[1].out_offset == 0
    assert attempts(run)[1].started_at is not None


def test_the_limit_over_all_attempts_counts_from_the_first_start() -> None:
    run = a_run(State.STARTING, started=None, policy=TWICE, expires_at=datetime.now(UTC) + timedelta(hours=1))

    def start(seconds_ago: float) -> None:
        leases.mark_running(
            run_id=run.pk,
            attempt=run.attempt,
            token=run.token,
            started_at=ago(seconds_ago),
            now=datetime.now(UTC),
            actor=AGENT,
            ref="",
            env="",
            total_seconds=3600,
        )
        run.refresh_from_db()

    start(100)
    first, deadline = run.started_at, run.total_deadline_at
    assert first is not None
    assert deadline == first + timedelta(hours=1)
    assert run.expires_at is None
    finish(run)
    make_due(run)
    sweeps.requeue_due(now=datetime.now(UTC))
    begin_next(run, start=False)
    start(1)
    assert (run.state, run.started_at, run.total_deadline_at) == ("running", first, deadline)


def write(run: Run, *values: int, lines: int = 0) -> None:
    """One step of the current attempt."""
    run.refresh_from_db()
    attempt = attempts(run)[-1]
    base = Position(attempt.out_offset, attempt.records_offset, lines=run.lines, items=run.items + run.items_discarded)
    step = Batch(
        run_id=run.pk,
        token=run.token,
        attempt=run.attempt,
        month=run.month,
        dataset_id=0,
        base=base,
        out_offset=base.out_offset + 10,
        records_offset=base.records_offset + 10,
        items=[b'{"n": %d, "z%d": 1}' % (value, run.attempt) for value in values],
        lines=[("line", 20)] * lines,
    )
    assert store_batches([step], now=datetime.now(UTC), actor=AGENT) == [step]


def run_twice(policy: RetryPolicy) -> Run:
    run = a_run(policy=policy)
    write(run, 1, 2, 3, lines=2)
    finish(run)
    make_due(run)
    sweeps.requeue_due(now=datetime.now(UTC))
    begin_next(run)
    write(run, 4, 5, lines=1)
    run.refresh_from_db()
    return run


def shown(run: Run, attempt: int | None = None) -> list[list[int]]:
    """The numbers of the items, as each door shows them."""
    page = [item.data["n"] for item in selectors.item_page(run, attempt=attempt)]
    lines = [json.loads(line)["n"] for line in selectors.items_jsonl(run, attempt=attempt)]
    table = [int(line.split(b",")[0]) for line in b"".join(selectors.items_csv(run, attempt=attempt)).splitlines()[1:]]
    return [page, lines, table]


def test_items_of_a_failed_attempt_are_kept() -> None:
    run = run_twice(KEEPING)
    assert shown(run) == [[1, 2, 3, 4, 5]] * 3
    assert shown(run, attempt=1) == [[1, 2, 3]] * 3
    assert (run.items, run.items_discarded, run.lines) == (5, 0, 3)


def test_items_of_a_failed_attempt_are_replaced_at_every_door() -> None:
    run = run_twice(REPLACING)
    assert shown(run) == [[4, 5]] * 3
    assert selectors.item_columns(run) == ["n", "z2"]
    assert (run.items, run.items_discarded, run.lines) == (2, 3, 3)
    assert [attempt.items_discarded for attempt in attempts(run)] == [True, False]


def test_replaced_items_stay_stored_and_are_numbered_through() -> None:
    run = run_twice(REPLACING)
    assert shown(run, attempt=1) == [[1, 2, 3]] * 3
    assert [item.seq for item in selectors.item_page(run)] == [4, 5]


def test_items_are_replaced_only_once_the_next_attempt_runs() -> None:
    run = a_run(policy=REPLACING)
    write(run, 1, 2)
    finish(run)
    make_due(run)
    sweeps.requeue_due(now=datetime.now(UTC))
    begin_next(run, start=False)
    assert shown(run) == [[1, 2]] * 3
    finish(run, Ending(State.CANCELED, "stopped_by_user", {}))
    assert (shown(run), run.items) == ([[1, 2]] * 3, 2)


# -- interrupted and raced ----------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("where", ["_close", "_wait", "move", "_failures_before"])
def test_a_decision_that_is_interrupted_leaves_nothing_and_is_made_again(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection dies in the middle of the transaction, before or after each of its steps."""
    run = a_run(policy=TWICE)
    real: Callable[..., Any] = getattr(finishing, where)

    def cut(*args: Any, **kwargs: Any) -> Any:
        real(*args, **kwargs)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    monkeypatch.setattr(finishing, where, cut)
    with pytest.raises(OperationalError):
        finish(run)
    monkeypatch.undo()
    connection.close()
    run.refresh_from_db()
    assert (run.state, run.token, kinds(run)) == ("running", 1, [])
    assert attempts(run)[0].finished_at is None
    assert finish(run) == State.RETRY_WAIT
    assert kinds(run) == ["retry_wait"]


@pytest.mark.django_db(transaction=True)
def test_of_many_who_end_the_same_attempt_one_does() -> None:
    run = a_run(policy=TWICE)
    seen = [EXIT_1, NODE_LOST, WELL, Ending(State.CANCELED, "stopped_by_user", {})] * 4

    def end(ending: Ending) -> State | None:
        try:
            return finishing.finish(
                run_id=run.pk, attempt=1, token=1, ending=ending, now=datetime.now(UTC), actor=AGENT
            )
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        answers = [answer for answer in pool.map(end, seen) if answer is not None]
    run.refresh_from_db()
    assert answers == [run.state]
    assert kinds(run) == [run.state]
    assert Attempt.objects.get(run=run).finished_at is not None


@pytest.mark.django_db(transaction=True)
def test_a_stop_and_a_natural_end_at_the_same_moment_a_thousand_times() -> None:
    """Whoever is first is first, whoever asks is told the truth, and the run is over once."""
    runs = many(a_run(), 1000)
    together = Barrier(2)

    def stop(run: Run) -> bool:
        together.wait(60)
        try:
            services.request_stop(run=run, by=ALICE, now=datetime.now(UTC))
        except services.RunFinished:
            return False
        return True

    def end(run: Run) -> bool:
        together.wait(60)
        ended = finishing.finish(run_id=run.pk, attempt=1, token=1, ending=WELL, now=datetime.now(UTC), actor=AGENT)
        return ended is not None

    def all_of(act: Callable[[Run], bool]) -> list[bool]:
        try:
            return [act(run) for run in runs]
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        stopping, ending = pool.submit(all_of, stop), pool.submit(all_of, end)
    assert all(ending.result())
    for run, stopped in zip(runs, stopping.result(), strict=True):
        assert kinds(run) == (["stopping", "succeeded"] if stopped else ["succeeded"])


def many(model: Run, count: int) -> list[Run]:
    """Runs like this one, in two statements."""
    attempt = attempts(model)[0]
    runs = [copy(model) for _ in range(count)]
    for run in runs:
        run.pk, run.request_id, run._state = None, uuid.uuid4(), ModelState()
    runs = Run.objects.bulk_create(runs)
    Attempt.objects.bulk_create(
        Attempt(run=run, number=1, node_id=attempt.node_id, executor="process", claimed_at=attempt.claimed_at)
        for run in runs
    )
    return runs
