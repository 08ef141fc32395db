"""What is due although nobody who should see to it lives; any number may sweep at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from apps.core.actors import Actor
from apps.runs import reasons, services, sweeps, tasks
from apps.runs.models import Attempt, Node, Run, RunEvent
from apps.runs.policies import Backoff, RetryPolicy
from apps.runs.states import State
from tests.apps.runs.placed import a_run, ago, attempts, finish, kinds, last_event, make_due
from tests.factories import NodeFactory, RunFactory, SpiderFactory

ALICE = Actor("user", "alice")
AGAIN = RetryPolicy(attempts=3, backoff=Backoff.FIXED, delay_seconds=60, jitter=0)

pytestmark = pytest.mark.django_db


def sweep(what: Callable[..., int], **more: Any) -> int:
    return what(now=datetime.now(UTC), **more)


def look(run: Run) -> tuple[str, str]:
    run.refresh_from_db()
    return run.state, reasons.sentence(run)


def a_queued(**given: Any) -> Run:
    limits = given.pop("limits", {})
    run: Run = RunFactory(**given)
    run.spec["limits"] |= limits
    run.save(update_fields=["spec"])
    return run


# -- without a place ----------------------------------------------------------------------------------------------


def test_a_run_goes_to_the_queue_when_its_next_attempt_is_due_and_not_before() -> None:
    run = a_run(policy=AGAIN)
    queued_at = run.queued_at
    finish(run)
    assert sweep(sweeps.requeue_due) == 0
    make_due(run)
    assert sweep(sweeps.requeue_due) == 1
    assert sweep(sweeps.requeue_due) == 0
    assert look(run) == ("queued", "")
    assert run.queued_at == queued_at


def test_a_run_that_nobody_started_in_time_expires_and_says_how_long_it_waited() -> None:
    run = a_queued(expires_at=ago(600), limits={"queue_seconds": 1800})
    patient = a_queued(expires_at=datetime.now(UTC) + timedelta(minutes=1))
    endless = a_queued()
    assert sweep(sweeps.expire_queue) == 1
    assert look(run) == ("timed_out", "It was not started within the 30 minutes it may wait.")
    assert [look(each)[0] for each in (patient, endless)] == ["queued", "queued"]


@pytest.mark.parametrize("state", [State.QUEUED, State.RETRY_WAIT])
def test_the_limit_over_all_attempts_ends_a_run_that_waits(state: State) -> None:
    run = a_queued(state=state, total_deadline_at=ago(600), limits={"total_seconds": 7200}, attempt=1)
    run.spec["repair_job"] = 7
    run.save(update_fields=["spec"])
    assert sweep(sweeps.end_out_of_time) == 1
    assert look(run) == ("timed_out", "Ended after the time limit of 2 hours for all its attempts.")
    assert run.repair_due


def test_more_runs_than_a_batch_are_all_seen_to() -> None:
    spider = SpiderFactory()  # one for all: a version each is slow to make
    for _ in range(sweeps.BATCH + 5):
        RunFactory(job=None, spider=spider, expires_at=ago(600))
    assert sweep(sweeps.expire_queue) == sweeps.BATCH + 5


# -- on a node whose worker is dead -------------------------------------------------------------------------------


def test_a_run_past_its_time_limit_is_told_to_stop_for_whoever_adopts_it() -> None:
    run = a_run(limits={"timeout_seconds": 60}, started=60 + sweeps.LATE_SECONDS + 60)
    assert sweep(sweeps.stop_overdue) == 1
    assert look(run)[0] == "stopping"
    assert (run.stop_cause, run.token) == ("run_timeout", 1)
    assert reasons.sentence(last_event(run)) == "Stopped after the time limit of 1 minute."
    assert sweep(sweeps.stop_overdue) == 0


def test_a_living_agent_has_the_first_word_at_a_limit() -> None:
    a_run(limits={"timeout_seconds": 60}, started=61)
    assert sweep(sweeps.stop_overdue) == 0


def test_time_spent_paused_counts_for_no_limit() -> None:
    limits = {"timeout_seconds": 60, "total_seconds": 60}
    a_run(limits=limits, started=500, paused_seconds=450)
    a_run(State.PAUSED, limits=limits, started=500, paused_at=ago(400), total_deadline_at=ago(300))
    assert sweep(sweeps.stop_overdue) == 0


def test_the_limits_of_a_later_attempt_count_from_its_own_start() -> None:
    run = a_run(limits={"timeout_seconds": 60}, started=500)
    Attempt.objects.filter(run=run).update(started_at=ago(10))
    assert sweep(sweeps.stop_overdue) == 0


def test_a_run_that_does_not_start_is_told_to_stop() -> None:
    waited = sweeps.BUILD_SECONDS + 30 + sweeps.LATE_SECONDS
    run = a_run(State.STARTING, limits={"start_seconds": 30}, started=None, claimed=waited + 60)
    young = a_run(State.STARTING, limits={"start_seconds": 30}, started=None, claimed=waited - 1)
    assert sweep(sweeps.stop_overdue) == 1
    assert (look(run)[0], run.stop_cause, look(young)[0]) == ("stopping", "start_timeout", "starting")


def test_the_limit_over_all_attempts_reaches_a_placed_run() -> None:
    run = a_run(limits={"total_seconds": 3600}, total_deadline_at=ago(sweeps.LATE_SECONDS + 60))
    assert sweep(sweeps.stop_overdue) == 1
    assert (look(run)[0], run.stop_cause) == ("stopping", "total_timeout")
    assert reasons.sentence(last_event(run)) == "Ended after the time limit of 1 hour for all its attempts."


@pytest.mark.parametrize("limits", [{"timeout_seconds": "soon"}, {"timeout_seconds": None}, {"timeout_seconds": []}])
def test_an_order_that_cannot_be_read_does_not_stop_the_sweep(limits: dict[str, Any]) -> None:
    a_run(limits=limits, started=10**6)
    late = a_run(limits={"timeout_seconds": 60}, started=500)
    Run.objects.filter(pk=a_run().pk).update(spec="nothing")
    assert sweep(sweeps.stop_overdue) == 1
    assert look(late)[0] == "stopping"


def test_a_pause_ends_by_itself_after_the_longest_its_order_allows() -> None:
    paused = {"state": State.PAUSED, "pause_requested_at": ago(700)}
    run = a_run(**paused, limits={"pause_seconds": 600}, paused_at=ago(660))
    other = a_run(**paused, paused_at=ago(660))
    day = a_run(**paused, paused_at=ago(86460))
    assert sweep(sweeps.resume_long_paused) == 2
    assert sweep(sweeps.resume_long_paused) == 0
    for each in (run, other, day):
        each.refresh_from_db()
    assert [each.pause_requested_at is None for each in (run, other, day)] == [True, False, True]
    note = last_event(run)
    assert (note.kind, note.actor) == ("resume", "system: clawpanel")
    assert reasons.sentence(note).startswith("It goes on: it had been paused for ")


def test_what_runs_past_the_time_its_node_is_to_be_empty_goes_elsewhere() -> None:
    node = NodeFactory(name="node-7", cordoned_at=ago(60), drain_until=ago(600))
    later = NodeFactory(cordoned_at=ago(60), drain_until=datetime.now(UTC) + timedelta(hours=1))
    run, stays = a_run(node=node), a_run(node=later)
    stopping = a_run(State.STOPPING, node=node, stop_cause="user")
    assert sweep(sweeps.stop_drained) == 1
    assert sweep(sweeps.stop_drained) == 0
    assert look(run)[0] == "stopping"
    assert (run.stop_cause, look(stays)[0]) == ("node_drained", "running")
    assert reasons.sentence(last_event(run)) == "Ended because node node-7 was to be empty by then."
    stopping.refresh_from_db()
    assert stopping.stop_cause == "user"


# -- silent nodes -------------------------------------------------------------------------------------------------


def silent_node(seconds: float = 130) -> Node:
    node: Node = NodeFactory(heartbeat_at=ago(seconds))
    return node


def give_up(wait: Callable[[float], object] = lambda _seconds: None) -> int:
    return sweeps.give_up_on_silent_nodes(now=datetime.now(UTC), wait=wait)


def test_a_run_on_a_silent_node_is_tried_again_elsewhere_under_the_budget_for_machines() -> None:
    run = a_run(node=silent_node())
    assert give_up() == 1
    assert give_up() == 0
    assert look(run)[0] == "retry_wait"
    assert (run.node, attempts(run)[0].reason, attempts(run)[0].infrastructure) == (None, "node_lost", True)
    assert last_event(run).detail["infrastructure"] is True


def test_a_run_whose_budget_for_machines_is_used_is_lost() -> None:
    run = a_run(node=silent_node(), policy=RetryPolicy(infrastructure=0))
    give_up()
    assert look(run)[0] == "lost"


def test_a_run_that_waits_for_its_node_stays_with_it() -> None:
    run = a_run(node=silent_node(3600), order={"on_node_lost": "wait"})
    assert give_up() == 0
    assert look(run)[0] == "running"


def test_a_run_that_waits_for_its_node_ends_when_a_person_stops_it() -> None:
    node = silent_node(3600)
    run = a_run(node=node, order={"on_node_lost": "wait"})
    services.request_stop(run=run, by=ALICE, now=datetime.now(UTC))
    assert give_up() == 1
    assert look(run) == (
        "canceled",
        f"Stopped by alice. Node {node.name} did not answer, so nobody saw it end.",
    )


def test_a_stop_is_not_true_before_the_node_counts_as_lost() -> None:
    run = a_run(node=silent_node(60))
    services.request_stop(run=run, by=ALICE, now=datetime.now(UTC))
    assert give_up() == 0
    assert look(run)[0] == "stopping"


def test_a_drain_that_hits_a_silent_node_loses_the_attempt_and_nothing_else() -> None:
    run = a_run(State.STOPPING, node=silent_node(), stop_cause="node_drained")
    give_up()
    assert (look(run)[0], run.reason) == ("retry_wait", "node_lost")


def test_a_time_limit_that_passed_on_a_silent_node_ends_the_run_as_its_policy_says() -> None:
    run = a_run(node=silent_node(), limits={"timeout_seconds": 60}, started=500, order={"on_node_lost": "wait"})
    sweep(sweeps.stop_overdue)
    give_up()
    assert look(run)[0] == "timed_out"
    assert attempts(run)[0].reason == "run_timeout"


def test_a_node_that_speaks_up_during_the_second_look_keeps_its_runs() -> None:
    node = silent_node()
    run = a_run(node=node)
    assert give_up(lambda _seconds: Node.objects.filter(pk=node.pk).update(heartbeat_at=datetime.now(UTC))) == 0
    assert look(run)[0] == "running"


def test_a_run_that_is_adopted_during_the_second_look_is_not_lost() -> None:
    run = a_run(node=silent_node())
    assert give_up(lambda _seconds: Run.objects.filter(pk=run.pk).update(token=2)) == 0


# -- all together -------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_fifty_sweeps_at_once_do_everything_once() -> None:
    node = NodeFactory(cordoned_at=ago(60), drain_until=ago(600))
    due = [a_run(policy=AGAIN) for _ in range(3)]
    for run in due:
        finish(run)
        make_due(run)
    expired = [a_queued(expires_at=ago(600)) for _ in range(3)]
    drained = [a_run(node=node) for _ in range(3)]
    late = [a_run(limits={"timeout_seconds": 1}, started=500) for _ in range(3)]
    paused = [a_run(State.PAUSED, pause_requested_at=ago(9), paused_at=ago(10**6)) for _ in range(3)]
    lost = [a_run(node=silent_node()) for _ in range(3)]
    before = RunEvent.objects.count()

    def one(_number: int) -> None:
        try:
            for each in (
                sweeps.requeue_due,
                sweeps.expire_queue,
                sweeps.end_out_of_time,
                sweeps.stop_drained,
                sweeps.stop_overdue,
                sweeps.resume_long_paused,
            ):
                each(now=datetime.now(UTC))
            give_up()
        finally:
            connection.close()

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(one, range(50)))
    assert RunEvent.objects.count() == before + 18
    assert {kinds(run)[-1] for run in due} == {"queued"}
    assert {kinds(run)[-1] for run in expired} == {"timed_out"}
    assert {kinds(run)[-1] for run in (*drained, *late)} == {"stopping"}
    assert {kinds(run)[-1] for run in paused} == {"resume"}
    assert {kinds(run)[-1] for run in lost} == {"retry_wait"}


def test_one_sweep_that_fails_does_not_keep_the_others_from_what_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(**_: object) -> int:
        raise ValueError

    run = a_queued(expires_at=ago(600))
    monkeypatch.setattr(tasks, "_SWEEPS", (fails, sweeps.expire_queue))
    monkeypatch.setattr(tasks.connection, "close", lambda: None)
    tasks.sweep()
    assert look(run)[0] == "timed_out"
