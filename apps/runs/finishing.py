"""The end of an attempt: in one transaction it is closed, and its run is over or waits for the next one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Count, DateTimeField, F, Q, Value
from django.db.models.functions import Greatest, Now

from apps.core.actors import Actor
from apps.core.background import enqueue
from apps.runs.models import Attempt, Run, RunEvent
from apps.runs.moves import move
from apps.runs.policies import FailedItems, RetryPolicy
from apps.runs.retries import FAILURES, Decision, Verdict, decide
from apps.runs.states import PLACED, State


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ended, and the state of its run if no other attempt follows."""

    state: State
    reason: str
    detail: dict[str, Any]
    exit_code: int | None = None
    oom_killed: bool = False
    memory_warning: bool = False
    finished_at: datetime | None = None


# What a run has of the attempt it holds a place with; the next begins without it.
_UNPLACED: dict[str, Any] = {
    "node": None,
    "worker": "",
    "lease_until": None,
    "stop_requested_at": None,
    "stop_cause": "",
    "kill_requested_at": None,
    "pause_requested_at": None,
    "paused_at": None,
    "paused_seconds": 0.0,
}


@transaction.atomic(savepoint=False)
def finish(
    *, run_id: int, attempt: int, token: int, ending: Ending, now: datetime, actor: Actor, chance: float | None = None
) -> State | None:
    """Close the attempt and move its run to where it stands now; None when it is somebody else's, or over already.

    The caller has proof that nothing of the attempt runs any more, or has given up on its node.
    """
    if ending.state not in FAILURES:
        ended = _end(run_id, token, ending, now, actor)
        if ended:
            _close(run_id, attempt, ending, now, infrastructure=False)
        return ending.state if ended else None
    run = (
        Run.objects.select_for_update(no_key=True)
        .filter(pk=run_id, token=token, attempt=attempt, state__in=PLACED)
        .annotate(clock=Now())
        .only("spec", "stop_cause", "total_deadline_at")
        .first()
    )
    if run is None:
        return None
    policy = RetryPolicy.read(run.spec.get("retry") if isinstance(run.spec, dict) else None)
    left = None if run.total_deadline_at is None else (run.total_deadline_at - run.clock).total_seconds()
    decision = decide(
        policy=policy,
        state=ending.state,
        reason=ending.reason,
        exit_code=ending.exit_code,
        stop_cause=run.stop_cause,
        seconds_left=left,
        chance=chance,
        **_failures_before(run_id, attempt),
    )
    _close(run_id, attempt, ending, now, infrastructure=decision.infrastructure)
    if decision.verdict is Verdict.AGAIN:
        _wait(run_id, token, ending, decision, run.clock, now, actor)
        return State.RETRY_WAIT
    if decision.verdict is Verdict.EXHAUSTED:
        _note_exhausted(run_id, attempt, decision, now, actor)
    repair = isinstance(run.spec, dict) and run.spec.get("repair_job") is not None
    _end(run_id, token, ending, now, actor, repair_due=repair)
    if repair:
        enqueue("jobs.start_repairs")
    return ending.state


def _failures_before(run_id: int, attempt: int) -> dict[str, int]:
    """Counted from the attempts that are closed, never carried along."""
    earlier = Attempt.objects.filter(run_id=run_id, number__lt=attempt, finished_at__isnull=False)
    return earlier.aggregate(
        own_failures=Count("pk", filter=Q(infrastructure=False)),
        infrastructure_failures=Count("pk", filter=Q(infrastructure=True)),
    )


def _close(run_id: int, attempt: int, ending: Ending, now: datetime, *, infrastructure: bool) -> None:
    Attempt.objects.filter(run_id=run_id, number=attempt).update(
        oom_killed=ending.oom_killed,
        reason=ending.reason,
        detail=ending.detail,
        exit_code=ending.exit_code,
        finished_at=_not_before_the_start(ending, now),
        infrastructure=infrastructure,
    )


def _end(run_id: int, token: int, ending: Ending, now: datetime, actor: Actor, **fields: Any) -> bool:
    return move(
        run_id=run_id,
        to=ending.state,
        frm=PLACED,
        now=now,
        actor=actor,
        token=token,
        reason=ending.reason,
        detail=ending.detail,
        memory_warning=ending.memory_warning,
        exit_code=ending.exit_code,
        finished_at=_not_before_the_start(ending, now),
        **fields,
    )


def _not_before_the_start(ending: Ending, now: datetime) -> Greatest:
    """The start may have been written down late, and by a statement whose answer the agent never got."""
    return Greatest(F("started_at"), Value(ending.finished_at or now, output_field=DateTimeField()))


def _wait(
    run_id: int, token: int, ending: Ending, decision: Decision, clock: datetime, now: datetime, actor: Actor
) -> None:
    # By the database's clock, like everything that sweeps compare. The new token shuts out whoever still follows it.
    retry_at = clock + timedelta(seconds=decision.delay_seconds)
    detail = {
        **ending.detail,
        **_budget(decision),
        "retry_at": retry_at.isoformat(timespec="seconds"),
        "delay_seconds": round(decision.delay_seconds),
    }
    move(
        run_id=run_id,
        to=State.RETRY_WAIT,
        frm=PLACED,
        now=now,
        actor=actor,
        token=token,
        new_token=token + 1,
        reason=ending.reason,
        detail=detail,
        retry_at=retry_at,
        **_UNPLACED,
    )


def _note_exhausted(run_id: int, attempt: int, decision: Decision, now: datetime, actor: Actor) -> None:
    detail = _budget(decision) | ({"out_of_time": True} if decision.out_of_time else {})
    RunEvent.objects.create(
        run_id=run_id,
        at=now,
        kind="exhausted",
        attempt=attempt,
        reason="exhausted",
        detail=detail,
        actor=str(actor)[:200],
    )


def _budget(decision: Decision) -> dict[str, Any]:
    return {
        "failures": decision.failures,
        "attempts": decision.allowed,
        "infrastructure": decision.infrastructure,
    }


_DISCARD = """
WITH marked AS (
    UPDATE runs_attempt SET items_discarded = true
    WHERE run_id = %(run)s AND number < %(attempt)s AND NOT items_discarded RETURNING items
)
UPDATE runs_run r SET items = r.items - gone.items, items_discarded = r.items_discarded + gone.items
FROM (SELECT coalesce(sum(items), 0) AS items FROM marked) AS gone WHERE r.id = %(run)s
"""


def replace_items(*, run_id: int, attempt: int) -> None:
    """With the start of the next attempt the items of failed ones are out, when the order says so. They stay stored.

    `Run.items` counts what is shown; the two counts together number the next item.
    """
    spec = Run.objects.filter(pk=run_id).values_list("spec__retry", flat=True).first()
    if RetryPolicy.read(spec).items is FailedItems.REPLACE:
        with connection.cursor() as cursor:
            cursor.execute(_DISCARD, {"run": run_id, "attempt": attempt})
