"""A run with retries between two agents, sweeps and people: real services, in any order, late and twice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.test import TestCase
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from apps.core.actors import Actor
from apps.runs import finishing, leases, queue, services, sweeps
from apps.runs.finishing import Ending
from apps.runs.ingest import Batch, Position, store_batches
from apps.runs.models import Attempt, Node, Run, RunEvent
from apps.runs.policies import Backoff, FailedItems, RetryPolicy
from apps.runs.states import MOVES, PLACED, TERMINAL, State
from tests.apps.runs.placed import AGENT, EXIT_1, NODE_LOST, WELL
from tests.factories import NodeFactory, RunFactory

ALICE = Actor("user", "alice")
ENDINGS = [
    EXIT_1,
    NODE_LOST,
    WELL,
    Ending(State.FAILED, "oom", {}, exit_code=137),
    Ending(State.TIMED_OUT, "run_timeout", {"seconds": 5}, exit_code=143),
    Ending(State.FAILED, "param_error", {}),
    Ending(State.CANCELED, "stopped_by_user", {}, exit_code=143),
]
POLICIES = st.builds(
    RetryPolicy,
    attempts=st.integers(1, 3),
    infrastructure=st.integers(0, 2),
    backoff=st.sampled_from(Backoff),
    items=st.sampled_from(FailedItems),
)
# A view is what an agent believes: (attempt, token). Those of the past come back late.
View = tuple[int, int]


class LifeWithRetries(RuleBasedStateMachine):
    views = Bundle("views")

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Callable[[], object]] = []
        self.token = 0

    @initialize(policy=POLICIES, wait=st.booleans())
    def queue_a_run(self, policy: RetryPolicy, wait: bool) -> None:
        self.policy = policy
        self.nodes: list[Node] = [NodeFactory(), NodeFactory()]
        run = RunFactory()
        run.spec |= {"retry": policy.as_spec(), "on_node_lost": "wait" if wait else "retry", "repair_job": 7}
        run.save(update_fields=["spec"])
        self.id = run.pk

    def teardown(self) -> None:
        if hasattr(self, "id"):
            Run.objects.filter(pk=self.id).exclude(state__in=TERMINAL).update(state=State.CANCELED)

    def run_now(self) -> Run:
        return Run.objects.get(pk=self.id)

    def do(self, call: Callable[[], object]) -> object:
        """Kept, so that it may come a second time at any later moment."""
        self.calls.append(call)
        return call()

    # -- agents

    @rule(target=views, which=st.integers(0, 1))
    def claim(self, which: int) -> Any:
        taken = queue.claim(
            node=self.nodes[which], worker=f"w{which}", runs_home=Path("/nowhere"), now=datetime.now(UTC), limit=1
        )
        return multiple(*((each.attempt, each.token) for each in taken))

    @rule(target=views, which=st.integers(0, 1))
    def adopt(self, which: int) -> Any:
        dead = ["w0", "w1", "w2"]
        held = leases.adopt(node=self.nodes[which], worker="w2", dead=dead, now=datetime.now(UTC))
        return multiple(*((each.attempt, each.token) for each in held if each.run_id == self.id))

    @rule(view=views)
    def started(self, view: View) -> None:
        def start() -> object:
            now = datetime.now(UTC)
            return leases.mark_running(
                run_id=self.id, attempt=view[0], token=view[1], started_at=now, now=now, actor=AGENT, ref="", env=""
            )

        self.do(start)

    @rule(view=views, ending=st.sampled_from(ENDINGS))
    def ended(self, view: View, ending: Ending) -> None:
        before = self.run_now()
        mine = before.state in PLACED and (before.attempt, before.token) == view

        def end() -> State | None:
            return finishing.finish(
                run_id=self.id,
                attempt=view[0],
                token=view[1],
                ending=ending,
                now=datetime.now(UTC),
                actor=AGENT,
                chance=0.5,
            )

        answer = self.do(end)
        assert (answer is not None) == mine
        if answer is not None:
            assert self.run_now().state == answer

    @rule(view=views, count=st.integers(0, 3))
    def wrote(self, view: View, count: int) -> None:
        run, attempt = self.run_now(), Attempt.objects.filter(run_id=self.id, number=view[0]).first()
        if attempt is None:
            return
        base = Position(
            attempt.out_offset, attempt.records_offset, lines=run.lines, items=run.items + run.items_discarded
        )
        step = Batch(
            run_id=self.id,
            token=view[1],
            attempt=view[0],
            month=run.month,
            dataset_id=0,
            base=base,
            out_offset=base.out_offset + 1,
            records_offset=base.records_offset + 1,
            items=[b'{"n": 1}'] * count,
        )
        self.do(lambda: store_batches([step], now=datetime.now(UTC), actor=AGENT))

    @rule(view=views)
    def given_back(self, view: View) -> None:
        if Attempt.objects.filter(run_id=self.id, number=view[0], items__gt=0).exists():
            return  # only what never was on the engine is given back: it has written nothing
        self.do(
            lambda: leases.give_back(
                run_id=self.id, attempt=view[0], token=view[1], now=datetime.now(UTC), actor=AGENT, why=""
            )
        )

    @rule(view=views)
    def frozen(self, view: View) -> None:
        now = datetime.now(UTC)
        self.do(lambda: leases.mark_paused(run_id=self.id, token=view[1], now=now, actor=AGENT))

    @rule(view=views)
    def thawed(self, view: View) -> None:
        now = datetime.now(UTC)
        self.do(lambda: leases.mark_resumed(run_id=self.id, token=view[1], paused_at=now, now=now, actor=AGENT))

    @rule(data=st.data())
    def a_message_comes_twice(self, data: st.DataObject) -> None:
        if self.calls:
            data.draw(st.sampled_from(self.calls))()

    # -- sweeps and people

    @rule()
    def time_passes(self) -> None:
        Run.objects.filter(pk=self.id).update(retry_at=datetime.now(UTC) - timedelta(days=1))
        sweeps.requeue_due(now=datetime.now(UTC))

    @rule()
    def nodes_fall_silent(self) -> None:
        silent = Node.objects.filter(pk__in=[node.pk for node in self.nodes])
        silent.update(heartbeat_at=datetime.now(UTC) - timedelta(days=1))
        sweeps.give_up_on_silent_nodes(now=datetime.now(UTC), wait=lambda _seconds: None)
        silent.update(heartbeat_at=datetime.now(UTC))

    @rule()
    def nodes_are_drained(self) -> None:
        drained = Node.objects.filter(pk__in=[node.pk for node in self.nodes])
        drained.update(drain_until=datetime.now(UTC) - timedelta(days=1))
        sweeps.stop_drained(now=datetime.now(UTC))
        drained.update(drain_until=None)

    @rule(what=st.sampled_from(["stop", "kill", "pause", "resume"]))
    def a_person_asks(self, what: str) -> None:
        ask = getattr(services, f"request_{what}")
        try:
            ask(run=self.run_now(), by=ALICE, now=datetime.now(UTC))
        except (services.RunFinished, services.NotPossible):
            return

    # -- what must always hold

    @invariant()
    def history_is_a_legal_path_and_ends_once(self) -> None:
        if not hasattr(self, "id"):
            return
        path = list(
            RunEvent.objects.filter(run_id=self.id, kind="state").order_by("pk").values_list("from_state", "to_state")
        )
        at = State.QUEUED
        for frm, to in path:
            assert frm == at
            assert to in MOVES[State(frm)]
            at = State(to)
        assert self.run_now().state == at

    @invariant()
    def no_budget_is_exceeded(self) -> None:
        if not hasattr(self, "id"):
            return
        run = self.run_now()
        rows = list(Attempt.objects.filter(run_id=self.id).order_by("number"))
        assert [row.number for row in rows] == list(range(1, len(rows) + 1))
        assert len(rows) == run.attempt
        closed = [row for row in rows if row.finished_at]
        machines = sum(row.infrastructure for row in closed)
        assert machines <= self.policy.infrastructure + 1
        assert len(closed) - machines <= self.policy.attempts
        assert len(rows) - len(closed) == (run.state in PLACED)
        if run.state == State.RETRY_WAIT:
            assert (machines <= self.policy.infrastructure, len(closed) - machines < self.policy.attempts) == (
                True,
                True,
            )

    @invariant()
    def fences_only_rise_and_a_place_is_held_or_not(self) -> None:
        if not hasattr(self, "id"):
            return
        run = self.run_now()
        assert run.token >= self.token
        self.token = run.token
        if run.state in PLACED:
            assert run.node_id is not None
        elif run.state not in TERMINAL:
            assert (run.node_id, run.worker, run.stop_cause) == (None, "", "")
        assert (run.retry_at is not None) or run.state != State.RETRY_WAIT
        assert not run.repair_due or run.state in (State.FAILED, State.LOST, State.TIMED_OUT)

    @invariant()
    def items_are_counted_as_they_are_shown(self) -> None:
        if not hasattr(self, "id"):
            return
        run = self.run_now()
        rows = list(Attempt.objects.filter(run_id=self.id))
        assert run.items == sum(row.items for row in rows if not row.items_discarded)
        assert run.items_discarded == sum(row.items for row in rows if row.items_discarded)


class TestLifeWithRetries(LifeWithRetries.TestCase, TestCase):  # type: ignore[misc]  # hypothesis makes it at run time
    settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
