"""Runs on nodes, in any phase, for the tests of what ends them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from apps.core.actors import Actor
from apps.runs import finishing, leases
from apps.runs.finishing import Ending
from apps.runs.models import Attempt, Node, Run, RunEvent
from apps.runs.policies import RetryPolicy
from apps.runs.states import State
from tests.factories import AttemptFactory, NodeFactory, RunFactory

AGENT = Actor("agent", "node-a")
EXIT_1 = Ending(State.FAILED, "exit_nonzero", {"exit_code": 1}, exit_code=1)
NODE_LOST = Ending(State.LOST, "node_lost", {"node": "a"})
WELL = Ending(State.SUCCEEDED, "", {}, exit_code=0)


def ago(seconds: float) -> datetime:
    return datetime.now(UTC) - timedelta(seconds=seconds)


def a_run(
    state: State = State.RUNNING,
    *,
    policy: RetryPolicy | None = None,
    limits: dict[str, Any] | None = None,
    node: Node | None = None,
    started: float | None = 10,
    claimed: float = 20,
    order: dict[str, Any] | None = None,
    **fields: Any,
) -> Run:
    """The first attempt of a run that holds a place; `started` and `claimed` are seconds ago."""
    run: Run = RunFactory(state=state, token=1, attempt=1, node=node or NodeFactory(), worker="w", **fields)
    run.spec["retry"] = (policy or RetryPolicy()).as_spec()
    run.spec["limits"] |= limits or {}
    run.spec |= order or {}
    run.save(update_fields=["spec"])
    if started is not None:
        Run.objects.filter(pk=run.pk).update(started_at=ago(started))
    AttemptFactory(
        run=run,
        node=run.node,
        claimed_at=ago(claimed),
        started_at=None if started is None else ago(started),
    )
    run.refresh_from_db()
    return run


def finish(run: Run, ending: Ending = EXIT_1, **given: Any) -> State | None:
    """End the current attempt as its agent would."""
    known = {"run_id": run.pk, "attempt": run.attempt, "token": run.token, "now": datetime.now(UTC), "actor": AGENT}
    state = finishing.finish(**{**known, "ending": ending, **given})
    run.refresh_from_db()
    return state


def begin_next(run: Run, *, start: bool = True) -> None:
    """What a node does with a queued run: the next attempt is claimed, and runs."""
    run.refresh_from_db()
    assert run.state == State.QUEUED
    node = NodeFactory()
    Run.objects.filter(pk=run.pk).update(
        state=State.STARTING, token=run.token + 1, attempt=run.attempt + 1, node=node, worker="w"
    )
    run.refresh_from_db()
    AttemptFactory(run=run, number=run.attempt, node=node)
    if start:
        assert leases.mark_running(
            run_id=run.pk,
            attempt=run.attempt,
            token=run.token,
            started_at=datetime.now(UTC),
            now=datetime.now(UTC),
            actor=AGENT,
            ref="r",
            env="e",
        )
        run.refresh_from_db()


def make_due(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(retry_at=ago(600))


def kinds(run: Run) -> list[str]:
    """What happened, in order: states, or the kind of a note."""
    events = RunEvent.objects.filter(run=run).order_by("pk")
    return [event.to_state or event.kind for event in events]


def last_event(run: Run) -> RunEvent:
    return RunEvent.objects.filter(run=run).latest("pk")


def attempts(run: Run) -> list[Attempt]:
    return list(Attempt.objects.filter(run=run).order_by("number"))
