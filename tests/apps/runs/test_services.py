"""Asking for runs, stopping them and saying why one waits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from django.db import connection
from django.utils import translation

from apps.core.actors import Actor
from apps.core.errors import Conflict, Invalid
from apps.runs import reasons, services, sweeps
from apps.runs.models import Node, Run, RunEvent
from apps.runs.services import RunOrder
from apps.runs.states import PLACED, TERMINAL, State, Trigger
from tests.factories import NodeFactory, RunFactory, SpiderFactory

ALICE = Actor("user", "alice")
MIB = 1024 * 1024


def order(**given: object) -> RunOrder:
    spider = SpiderFactory()
    known = {"version": spider.current_version, "project": spider.project, "trigger": Trigger.API}
    return RunOrder(**{**known, **given})


def test_a_run_is_a_frozen_copy_of_its_order(db: None, now: datetime) -> None:
    asked = order(parameters={"depth": 3}, env={"A": "b"}, memory_mb=64, secrets={"password": 7}, ok_codes=(0, 3))
    run, created = services.request_run(order=asked, by=ALICE, now=now)
    run.refresh_from_db()
    assert created
    assert (run.state, run.queued_at, run.month, run.memory_bytes) == (
        "queued",
        now,
        now.date().replace(day=1),
        64 * MIB,
    )
    assert run.spec["parameters"] == {"depth": 3}
    assert run.spec["limits"] == {"memory_mb": 64, "cpus": 1.0, "timeout_seconds": 3600, "grace_seconds": 10}
    assert run.spec["secrets"] == {"password": 7}
    assert run.spec["ok_codes"] == [0, 3]
    event = RunEvent.objects.get(run=run)
    assert (event.from_state, event.to_state, event.actor) == ("", "queued", "alice")


def test_the_same_key_answers_with_the_same_run(db: None, now: datetime) -> None:
    asked = order()
    first, _ = services.request_run(order=asked, by=ALICE, now=now, idempotency_key="k1")
    second, created = services.request_run(order=asked, by=ALICE, now=now, idempotency_key="k1")
    assert (second.pk, created) == (first.pk, False)


def test_the_same_key_for_another_order_is_refused(db: None, now: datetime) -> None:
    asked = order()
    services.request_run(order=asked, by=ALICE, now=now, idempotency_key="k1")
    other = RunOrder(version=asked.version, project=asked.project, trigger=Trigger.API, parameters={"n": 1})
    with pytest.raises(Conflict) as refused:
        services.request_run(order=other, by=ALICE, now=now, idempotency_key="k1")
    assert refused.value.code == "idempotency_key_used"


@pytest.mark.parametrize("key", ["", "x" * 201, "a\nb", "a\0b"])
def test_a_key_that_cannot_be_kept_is_refused(db: None, now: datetime, key: str) -> None:
    with pytest.raises(Invalid):
        services.request_run(order=order(), by=ALICE, now=now, idempotency_key=key)


@pytest.mark.django_db(transaction=True)
def test_eight_requests_with_one_key_at_once_make_one_run(now: datetime) -> None:
    asked = order()

    def ask(_: int) -> tuple[int, bool]:
        try:
            run, created = services.request_run(order=asked, by=ALICE, now=now, idempotency_key="once")
            return run.pk, created
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))
    assert len({pk for pk, _created in answers}) == 1
    assert [created for _pk, created in answers].count(True) == 1


@pytest.mark.parametrize("state", [State.WAITING, State.QUEUED, State.RETRY_WAIT])
def test_what_does_not_run_yet_is_canceled_at_once(db: None, now: datetime, state: State) -> None:
    run = RunFactory(state=state)
    services.request_stop(run=run, by=ALICE, now=now)
    assert (run.state, run.reason, run.finished_at) == ("canceled", "stopped_by_user", now)
    assert reasons.sentence(run) == "Stopped by alice."


@pytest.mark.parametrize("state", [State.STARTING, State.RUNNING, State.PAUSED])
def test_what_runs_is_asked_to_stop_and_a_second_request_changes_nothing(db: None, now: datetime, state: State) -> None:
    run = RunFactory(state=state)
    services.request_stop(run=run, by=ALICE, now=now)
    services.request_stop(run=run, by=Actor("user", "bob"), now=now + timedelta(seconds=1))
    assert (run.state, run.stop_cause, run.stop_requested_at) == ("stopping", "user", now)
    assert RunEvent.objects.filter(run=run).count() == 1


@pytest.mark.parametrize("state", TERMINAL)
def test_what_is_over_cannot_be_stopped(db: None, now: datetime, state: State) -> None:
    run = RunFactory(state=state)
    with pytest.raises(services.RunFinished):
        services.request_stop(run=run, by=ALICE, now=now)


def test_a_rerun_is_the_same_order_under_a_new_number(db: None, now: datetime) -> None:
    run, _ = services.request_run(order=order(parameters={"a": 1}, ok_codes=(0, 4)), by=ALICE, now=now)
    again = services.rerun(run=run, by=ALICE, now=now, trigger=Trigger.MANUAL)
    assert again.pk != run.pk
    assert again.spec == run.spec
    assert again.state == State.QUEUED


def test_a_run_no_node_can_hold_is_refused_at_once_with_words(db: None, now: datetime) -> None:
    NodeFactory(memory_bytes=1024 * MIB)
    run, _ = services.request_run(order=order(memory_mb=4096), by=ALICE, now=now)
    assert (run.state, run.reason) == ("failed", "unplaceable")
    assert "needs 4096 MB of memory, the largest node has 1024 MB" in reasons.sentence(run)


def test_without_any_node_it_waits_and_says_so(db: None, now: datetime) -> None:
    run, _ = services.request_run(order=order(memory_mb=4096), by=ALICE, now=now)
    assert services.why_waiting(run, now) == "No worker is running."


def test_a_waiting_run_says_what_it_waits_for(db: None, now: datetime) -> None:
    run = RunFactory(state=State.QUEUED)
    node = NodeFactory(name="n1", slots=1, memory_bytes=1024 * MIB, trouble="The disk is full.", heartbeat_at=now)
    assert services.why_waiting(run, now) == "Node n1 starts nothing now: The disk is full."
    node.trouble = ""
    node.save()
    assert services.why_waiting(run, now) == ""
    RunFactory(state=State.RUNNING, node=node, memory_bytes=600 * MIB)
    assert services.why_waiting(run, now) == "The one place of node n1 is taken."
    node.slots = 2
    node.save()
    assert services.why_waiting(run, now) == "It needs 512 MB of memory, node n1 has 424 MB free."


def test_runs_of_a_silent_node_are_lost_after_two_minutes(db: None, now: datetime) -> None:
    silent = NodeFactory(name="gone", heartbeat_at=now - timedelta(seconds=121))
    alive = NodeFactory(heartbeat_at=now - timedelta(seconds=100))
    lost = [RunFactory(state=state, node=silent) for state in PLACED]
    kept = RunFactory(state=State.RUNNING, node=alive)
    assert sweeps.give_up_on_silent_nodes(now=now, wait=lambda _seconds: None) == len(lost)
    for run in lost:
        run.refresh_from_db()
        assert (run.state, run.reason) == ("retry_wait", "node_lost")
    kept.refresh_from_db()
    assert kept.state == State.RUNNING
    assert reasons.sentence(lost[0]) == "Node gone stopped answering, so its end is not known."


def test_no_run_is_lost_because_a_database_came_back_or_a_workers_clock_is_off(db: None, now: datetime) -> None:
    node = NodeFactory(heartbeat_at=now - timedelta(minutes=10))
    run = RunFactory(state=State.RUNNING, node=node)
    heartbeats: list[float] = []

    def beat(seconds: float) -> None:
        heartbeats.append(seconds)
        Node.objects.filter(pk=node.pk).update(heartbeat_at=now)

    assert sweeps.give_up_on_silent_nodes(now=now, wait=beat) == 0
    assert sweeps.give_up_on_silent_nodes(now=now + timedelta(hours=3), wait=beat) == 0
    assert heartbeats == [sweeps.HEARTBEAT_DUE_SECONDS]
    assert Run.objects.get(pk=run.pk).state == State.RUNNING


REASONS = [
    ("exit_nonzero", {"exit_code": 3}, "It ended with exit code 3."),
    ("exit_nonzero", {"exit_code": 127}, "Its command was not found (exit code 127)."),
    (
        "exit_nonzero",
        {"exit_code": 139, "signal": "SIGSEGV"},
        "It was ended by the signal SIGSEGV (exit code 139).",
    ),
    ("oom", {"memory_mb": 512}, "Out of memory: it needed more than 512 MB."),
    ("stopped_by_user", {"by": "alice"}, "Stopped by alice."),
    ("run_timeout", {"seconds": 600}, "Stopped after the time limit of 10 minutes."),
    ("run_timeout", {"seconds": 90}, "Stopped after the time limit of 90 seconds."),
    ("run_timeout", {"seconds": 3600}, "Stopped after the time limit of 1 hour."),
    ("killed", {}, "It was killed from outside (exit code 137)."),
    ("image_build_failed", {"error": "No such package."}, "What it requires could not be installed. No such package."),
    ("exit_nonzero", {"exit_code": 4, "meaning": {"en": "closed"}}, "It ended with exit code 4: closed."),
    ("exit_meaning", {"exit_code": 3, "meaning": {"en": "Nothing new!"}}, "It ended with exit code 3: Nothing new."),
    ("exit_meaning", {"exit_code": 3, "meaning": "odd"}, "It ended with exit code 3."),
    ("idle_timeout", {"seconds": 300}, "Stopped because it had written no line, item or request for 5 minutes."),
    ("idle_timeout", {}, "Stopped because it had shown no sign of life for too long."),
    ("total_timeout", {"seconds": 7200}, "Ended after the time limit of 2 hours for all its attempts."),
    ("queue_expired", {"seconds": 86400}, "It was not started within the 1 day it may wait."),
    ("replaced", {"run": 41}, "Replaced by run 41 of the same job."),
    ("replaced", {}, "Replaced by a newer run of the same job."),
    ("overlap_skip", {"run": 41}, "Skipped: run 41 of the same job was still active."),
    ("node_drained", {"node": "a"}, "Ended because node a was to be empty by then."),
    ("engine_restarted", {}, "The container engine of the node was restarted."),
    ("exhausted", {"failures": 3, "attempts": 3}, "It is not tried again: all its 3 attempts have failed."),
    (
        "exhausted",
        {"failures": 3, "attempts": 2, "infrastructure": True},
        "It is not tried again: the machines have failed it 3 times, and 2 may be made up for.",
    ),
    (
        "exhausted",
        {"failures": 1, "attempts": 3, "out_of_time": True},
        "It is not tried again: the time limit for all its attempts leaves no time for it.",
    ),
    (
        "stopped_by_user",
        {"by": "alice", "node": "a", "unreachable": True},
        "Stopped by alice. Node a did not answer, so nobody saw it end.",
    ),
    ("a_new_one", {}, "It ended for the reason “a_new_one”."),
    ("", {}, ""),
]


@pytest.mark.parametrize(("reason", "detail", "sentence"), REASONS)
def test_every_end_has_one_plain_sentence(reason: str, detail: dict[str, object], sentence: str) -> None:
    with translation.override("en"):
        assert reasons.sentence(SimpleNamespace(reason=reason, detail=detail)) == sentence


def test_what_an_exit_code_means_is_said_in_the_reader_s_language() -> None:
    detail = {"exit_code": 3, "meaning": {"en": "nothing new", "zh-hans": "没有新内容"}}
    with translation.override("zh-hans"):
        assert "没有新内容" in reasons.sentence(SimpleNamespace(reason="exit_meaning", detail=detail))


def test_a_run_that_never_had_a_heartbeat_is_swept_too(db: None, now: datetime) -> None:
    run = RunFactory(state=State.STARTING, node=None, lease_until=None)
    assert sweeps.give_up_on_silent_nodes(now=now, wait=lambda _seconds: None) == 1
    assert Run.objects.get(pk=run.pk).state == State.RETRY_WAIT
