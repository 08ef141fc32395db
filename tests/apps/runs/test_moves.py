"""The one door through which a run changes its state."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from django.db import IntegrityError, connection, transaction
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from apps.core.actors import Actor
from apps.runs.models import Run, RunEvent
from apps.runs.moves import move
from apps.runs.services import RunFinished, request_stop
from apps.runs.states import ACTIVE, MOVES, PLACED, TERMINAL, State
from tests.factories import JobFactory, RunFactory

AGENT = Actor("agent", "node-a")


def test_a_move_writes_its_event_and_the_reason(db: None, now: datetime) -> None:
    run = RunFactory(state=State.RUNNING, token=4, attempt=2)
    done = move(
        run_id=run.pk,
        to=State.FAILED,
        frm=PLACED,
        token=4,
        now=now,
        actor=AGENT,
        reason="exit_nonzero",
        detail={"exit_code": 3},
        exit_code=3,
    )
    run.refresh_from_db()
    event = RunEvent.objects.get(run=run)
    assert done
    assert (run.state, run.reason, run.detail, run.exit_code) == ("failed", "exit_nonzero", {"exit_code": 3}, 3)
    assert run.finished_at == now
    assert (event.from_state, event.to_state, event.attempt) == ("running", "failed", 2)
    assert (event.reason, event.actor) == ("exit_nonzero", "agent: node-a")


def test_a_stale_token_changes_nothing(db: None, now: datetime) -> None:
    run = RunFactory(state=State.RUNNING, token=4)
    assert not move(run_id=run.pk, to=State.LOST, frm=PLACED, token=3, now=now, actor=AGENT)
    run.refresh_from_db()
    assert run.state == State.RUNNING
    assert not RunEvent.objects.exists()


def test_a_move_that_no_run_may_make_is_a_bug(db: None, now: datetime) -> None:
    run = RunFactory(state=State.QUEUED)
    with pytest.raises(ValueError, match="may go from queued to succeeded"):
        move(run_id=run.pk, to=State.SUCCEEDED, frm=[State.QUEUED], now=now, actor=AGENT)


@pytest.mark.parametrize("state", TERMINAL)
def test_the_database_itself_keeps_terminal_states_terminal(db: None, state: State) -> None:
    run = RunFactory(state=state)
    with pytest.raises(IntegrityError, match="stays so"), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(state=State.RUNNING)


def test_every_state_has_its_moves() -> None:
    assert set(MOVES) == set(ACTIVE)


@pytest.mark.django_db(transaction=True)
def test_of_an_end_and_a_sweep_at_the_same_moment_one_wins_for_good(now: datetime) -> None:
    def end(given: tuple[int, State]) -> bool:
        try:
            return move(run_id=given[0], to=given[1], frm=PLACED, token=1, now=now, actor=AGENT)
        finally:
            connection.close()

    job = JobFactory()
    with ThreadPoolExecutor(4) as pool:
        for _ in range(25):
            run = RunFactory(state=State.RUNNING, token=1, job=job)
            ends = [State.SUCCEEDED, State.LOST, State.CANCELED, State.FAILED]
            won = list(pool.map(end, [(run.pk, state) for state in ends]))
            run.refresh_from_db()
            assert won.count(True) == 1
            assert run.state == ends[won.index(True)]
            assert RunEvent.objects.filter(run=run).count() == 1


class LifeOfARun(RuleBasedStateMachine):
    """Two agents with different tokens, a person and late or doubled messages, in any order."""

    tokens = Bundle("tokens")

    @initialize(target=tokens)
    def queue(self) -> int:
        self.run = RunFactory(state=State.QUEUED)
        self.states = ["queued"]
        return 0

    def _now(self) -> datetime:
        return datetime.now(UTC)

    def _move(self, to: State, frm: tuple[State, ...], token: int | None = None, new_token: int | None = None) -> bool:
        before = Run.objects.get(pk=self.run.pk)
        done = move(run_id=self.run.pk, to=to, frm=frm, token=token, new_token=new_token, now=self._now(), actor=AGENT)
        after = Run.objects.get(pk=self.run.pk)
        allowed = before.state in frm and (token is None or token == before.token)
        assert done == allowed
        if done:
            self.states.append(after.state)
        else:
            assert (after.state, after.token) == (before.state, before.token)
        return done

    @rule(target=tokens, token=tokens)
    def claim(self, token: int) -> int:
        self._move(State.STARTING, (State.QUEUED,), token, token + 1)
        return token + 1

    @rule(target=tokens)
    def adopt(self) -> int:
        run = Run.objects.get(pk=self.run.pk)
        if run.state in PLACED:
            Run.objects.filter(pk=run.pk).update(token=run.token + 1)
            return int(run.token) + 1
        return int(run.token)

    @rule(token=tokens)
    def started(self, token: int) -> None:
        self._move(State.RUNNING, (State.STARTING,), token)

    @rule(token=tokens, to=st.sampled_from([State.SUCCEEDED, State.FAILED, State.TIMED_OUT, State.CANCELED]))
    def ended(self, token: int, to: State) -> None:
        self._move(to, PLACED, token)

    @rule(target=tokens, token=tokens)
    def give_back(self, token: int) -> int:
        self._move(State.QUEUED, (State.STARTING,), token, token + 1)
        return token + 1

    @rule()
    def node_is_silent(self) -> None:
        self._move(State.LOST, PLACED)

    @rule()
    def person_stops(self) -> None:
        run = Run.objects.get(pk=self.run.pk)
        was = run.state
        try:
            request_stop(run=run, by=AGENT, now=self._now())
        except RunFinished:
            assert was in TERMINAL
        else:
            assert was not in TERMINAL
            if run.state != was:
                self.states.append(run.state)

    @invariant()
    def only_allowed_edges_and_nothing_after_the_end(self) -> None:
        if not hasattr(self, "run"):
            return
        events = list(RunEvent.objects.filter(run=self.run).order_by("pk").values_list("from_state", "to_state"))
        assert [frm for frm, _to in events] == self.states[:-1]
        assert [to for _frm, to in events] == self.states[1:]
        for frm, to in events:
            assert to in MOVES[State(frm)]


class TestLifeOfARun(LifeOfARun.TestCase, TestCase):  # type: ignore[misc]  # hypothesis makes it at run time
    settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
