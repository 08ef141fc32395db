"""The net under the agents: what is due although nobody who should see to it lives.

All of it is measured by the database's clock and guarded by state and token: any number may sweep at once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Max, TextField, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce, Now

from apps.core.actors import SYSTEM
from apps.core.background import enqueue
from apps.core.sessions import end_stuck_copies
from apps.engine import outcomes
from apps.engine.types import Limits, Observation, Phase
from apps.runs.finishing import Ending, finish
from apps.runs.models import Run, RunEvent
from apps.runs.moves import move
from apps.runs.states import PLACED, State

NODE_SILENT = timedelta(seconds=120)
# An agent beats every 5 s; one that could not waits up to 5 s more and needs up to 5 s to connect.
HEARTBEAT_DUE_SECONDS = 15.0
# A living agent ends a run at its limit; only what is past it by this much has nobody who does.
LATE_SECONDS = 15
# The limit of the start counts from the end of a build, which only the agent knows: it may take this long.
BUILD_SECONDS = 900
LONGEST_PAUSE_SECONDS = 86400
BATCH = 50
_STOPPABLE = (State.STARTING, State.RUNNING, State.PAUSED)


# -- runs without a place -----------------------------------------------------------------------------------------


def requeue_due(*, now: datetime, limit: int = 2000) -> int:
    """Runs whose next attempt is due go to the queue, without what the last one left on them."""

    def requeue(run_id: int, _spec: Mapping[str, Any]) -> bool:
        return move(
            run_id=run_id,
            to=State.QUEUED,
            frm=(State.RETRY_WAIT,),
            now=now,
            actor=SYSTEM,
            retry_at=None,
            stats={},
            output={},
            progress=None,
        )

    done = _for_each("state = 'retry_wait'", "retry_at", requeue, limit)
    if done:
        enqueue("runs.wake")
    return done


def expire_queue(*, now: datetime, limit: int = 2000) -> int:
    """Runs that nobody started within the time their order gives the queue."""

    def expire(run_id: int, spec: Mapping[str, Any]) -> bool:
        detail = _span(spec, "queue_seconds")
        return _time_out(run_id, (State.QUEUED,), "queue_expired", detail, now)

    return _for_each("state = 'queued'", "expires_at", expire, limit)


def end_out_of_time(*, now: datetime, limit: int = 2000) -> int:
    """Runs whose limit over all attempts passes while they wait for the next one."""

    def end(run_id: int, spec: Mapping[str, Any]) -> bool:
        frm = (State.QUEUED, State.RETRY_WAIT)
        repair = spec.get("repair_job") is not None
        ended = _time_out(run_id, frm, "total_timeout", _span(spec, "total_seconds"), now, repair_due=repair)
        if ended and repair:
            enqueue("jobs.start_repairs")
        return ended

    return _for_each("state IN ('queued', 'retry_wait')", "total_deadline_at", end, limit)


def _time_out(
    run_id: int, frm: tuple[State, ...], reason: str, detail: dict[str, Any], now: datetime, **fields: Any
) -> bool:
    return move(
        run_id=run_id, to=State.TIMED_OUT, frm=frm, now=now, actor=SYSTEM, reason=reason, detail=detail, **fields
    )


# In the order of the index on the time, else the planner might walk through all runs there ever were.
_DUE = """
SELECT id, spec FROM runs_run WHERE {states} AND {due} <= now() ORDER BY {due} LIMIT %s FOR NO KEY UPDATE SKIP LOCKED
"""


def _for_each(states: str, due: str, act: Callable[[int, Mapping[str, Any]], bool], limit: int) -> int:
    """`act` on the runs that are due, in small transactions; what another sweep has in its hands is left to it."""
    done = seen = 0
    while seen < limit:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(_DUE.format(states=states, due=due), [min(BATCH, limit)])
                rows = [(run_id, _object(spec)) for run_id, spec in cursor.fetchall()]
            done += sum(act(run_id, spec) for run_id, spec in rows)
        seen += len(rows)
        if len(rows) < BATCH:
            break
    return done


def _object(spec: str) -> dict[str, Any]:
    """A bare cursor gives jsonb as text."""
    read = json.loads(spec)
    return read if isinstance(read, dict) else {}


def _span(spec: Mapping[str, Any], name: str) -> dict[str, Any]:
    limits = spec.get("limits")
    seconds = limits.get(name) if isinstance(limits, dict) else None
    return {"seconds": seconds} if isinstance(seconds, (int, float)) else {}


# -- runs on a node -----------------------------------------------------------------------------------------------

# Idle time is not among these: what a run wrote while its worker was dead is read only by whoever adopts it.
_OVERDUE = """
SELECT * FROM (
    SELECT r.id, r.token, CASE
        WHEN r.state <> 'paused' AND r.total_deadline_at + %(late)s < now() THEN 'total_timeout'
        WHEN r.state <> 'paused' AND a.started_at + %(late)s
             + make_interval(secs => l.timeout + r.paused_seconds) < now() THEN 'run_timeout'
        WHEN r.state = 'starting' AND a.started_at IS NULL AND a.claimed_at + %(late)s
             + make_interval(secs => %(build)s + coalesce(l.start, %(start)s)) < now() THEN 'start_timeout'
    END AS cause, l.timeout, coalesce(l.start, %(start)s), l.total
    FROM runs_run r JOIN runs_attempt a ON a.run_id = r.id AND a.number = r.attempt
    CROSS JOIN LATERAL (SELECT
        CASE WHEN jsonb_typeof(r.spec->'limits'->'timeout_seconds') = 'number'
             THEN (r.spec->'limits'->>'timeout_seconds')::float END AS timeout,
        CASE WHEN jsonb_typeof(r.spec->'limits'->'start_seconds') = 'number'
             THEN (r.spec->'limits'->>'start_seconds')::float END AS start,
        CASE WHEN jsonb_typeof(r.spec->'limits'->'total_seconds') = 'number'
             THEN (r.spec->'limits'->>'total_seconds')::float END AS total
    ) l
    WHERE r.state = ANY(%(states)s)
) AS placed WHERE cause IS NOT NULL ORDER BY id LIMIT %(limit)s
"""


def stop_overdue(*, now: datetime, limit: int = 500) -> int:
    """Placed runs past a limit that nobody has ended: whoever follows or adopts them finds the stop."""
    values: dict[str, Any] = {
        "late": timedelta(seconds=LATE_SECONDS),
        "build": BUILD_SECONDS,
        "start": Limits().start_seconds,
        "states": list(_STOPPABLE),
        "limit": limit,
    }
    with connection.cursor() as cursor:
        cursor.execute(_OVERDUE, values)
        rows = cursor.fetchall()
    spans = {"run_timeout": 3, "start_timeout": 4, "total_timeout": 5}
    return sum(_stop(row[0], row[1], row[2], _seconds(row[spans[row[2]]]), now) for row in rows)


def _seconds(value: float | None) -> dict[str, Any]:
    return {} if value is None else {"seconds": value}


def stop_drained(*, now: datetime, limit: int = 500) -> int:
    """What still runs on a node past the time it was to be empty is ended here and tried again elsewhere."""
    late = Run.objects.filter(state__in=_STOPPABLE, node__drain_until__lte=Now())
    rows = late.order_by("pk").values_list("pk", "token", "node__name")[:limit]
    return sum(_stop(run_id, token, "node_drained", {"node": node}, now) for run_id, token, node in list(rows))


@transaction.atomic
def _stop(run_id: int, token: int, cause: str, detail: dict[str, Any], now: datetime) -> bool:
    stopped = move(
        run_id=run_id,
        to=State.STOPPING,
        frm=_STOPPABLE,
        now=now,
        actor=SYSTEM,
        token=token,
        reason=cause,
        detail=detail,
        stop_requested_at=now,
        stop_cause=cause,
    )
    if stopped:
        enqueue("runs.wake")
    return stopped


_LONG_PAUSED = """
WITH due AS MATERIALIZED (
    SELECT id FROM runs_run
    WHERE state = 'paused' AND pause_requested_at IS NOT NULL AND paused_at + make_interval(secs => CASE
        WHEN jsonb_typeof(spec->'limits'->'pause_seconds') = 'number'
        THEN (spec->'limits'->>'pause_seconds')::float ELSE %s END) <= now()
    ORDER BY id LIMIT %s FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE runs_run r SET pause_requested_at = NULL FROM due WHERE r.id = due.id
RETURNING r.id, r.attempt, extract(epoch FROM now() - r.paused_at)
"""


@transaction.atomic
def resume_long_paused(*, now: datetime, limit: int = 500) -> int:
    """A pause ends by itself after the longest its order allows: nothing stands still for ever."""
    with connection.cursor() as cursor:
        cursor.execute(_LONG_PAUSED, [LONGEST_PAUSE_SECONDS, limit])
        rows = cursor.fetchall()
    RunEvent.objects.bulk_create(
        RunEvent(
            run_id=run_id,
            at=now,
            kind="resume",
            attempt=attempt,
            reason="pause_limit",
            detail={"seconds": round(seconds)},
            actor=str(SYSTEM),
        )
        for run_id, attempt, seconds in rows
    )
    if rows:
        enqueue("runs.wake")
    return len(rows)


def give_up_on_silent_nodes(
    *, now: datetime, silent: timedelta = NODE_SILENT, wait: Callable[[float], object] = time.sleep
) -> int:
    """Attempts on a node that has said nothing for two minutes are lost; nobody can tell what became of them.

    By the database's clock, which stamps the heartbeats. After the database was away or its clock was set every node
    seems silent until its next heartbeat, so those that do are looked at a second time. A run whose order says that it
    waits for its node does, until somebody stops it.
    """
    waits = Coalesce(KeyTextTransform("on_node_lost", "spec"), Value("retry"), output_field=TextField())
    last_word = (
        Run.objects.filter(state__in=PLACED)
        .exclude(node__heartbeat_at__gt=Now() - silent)
        .alias(policy=waits)
        .exclude(policy="wait", state__in=_STOPPABLE)
    )
    suspects = set(last_word.values_list("pk", "token"))
    if not suspects:
        return 0
    wait(HEARTBEAT_DUE_SECONDS)
    still = last_word.values_list("pk", "token", "attempt", "node__name", "stop_cause")
    silents = [row for row in still if row[:2] in suspects]
    return sum(_lose(*row, now) for row in silents)


def _lose(run_id: int, token: int, attempt: int, node: str | None, cause: str, now: datetime) -> bool:
    detail: dict[str, Any] = {"node": node or ""}
    if cause and cause != "node_drained":
        # It was asked to end, and whether it did will not be known: the request decides, and the words are honest.
        outcome = outcomes.decide(Observation(Phase.MISSING), asked=cause)
        asked = RunEvent.objects.filter(run_id=run_id, to_state=State.STOPPING).order_by("-pk").first()
        known = asked.detail if asked is not None else {}
        ending = Ending(State(outcome.state), outcome.reason or "", {**known, **detail, "unreachable": True})
    else:
        ending = Ending(State.LOST, "node_lost", detail)
    done = finish(run_id=run_id, attempt=attempt, token=token, ending=ending, now=now, actor=SYSTEM)
    return done is not None


# -- hints and repairs --------------------------------------------------------------------------------------------


def free_what_the_frozen_hold(*, now: datetime) -> int:
    """Else whoever was frozen while it stored keeps its runs from every adopter."""
    return end_stuck_copies()


def wake_if_work_waits(*, now: datetime) -> bool:
    """A hint in place of one that may be lost."""
    oldest = Run.objects.filter(state=State.QUEUED).aggregate(oldest=Max("queued_at"))["oldest"]
    if oldest is not None:
        enqueue("runs.wake")
    return oldest is not None


def runs_with_repair_due(*, limit: int = 100) -> list[Run]:
    """Runs that failed for good and whose repair job has not been asked for, the oldest first."""
    return list(Run.objects.filter(repair_due=True).order_by("pk")[:limit])


def repair_done(*, run_id: int) -> None:
    """Its repair is asked for, or cannot be."""
    Run.objects.filter(pk=run_id, repair_due=True).update(repair_due=False)
