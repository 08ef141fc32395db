"""Who looks after which run. The database's clock measures all leases."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import DateTimeField, F, Value
from django.db.models.functions import Coalesce

from apps.core.actors import Actor
from apps.runs import finishing
from apps.runs.models import Attempt, Node, Run, RunEvent
from apps.runs.moves import move
from apps.runs.queue import LEASE_SECONDS
from apps.runs.states import PLACED, State


@dataclass(frozen=True, slots=True)
class NodeReport:
    """What a worker says of its machine. `trouble` is empty, or one sentence on why nothing is started there."""

    name: str
    worker: str
    executor: str
    isolated: bool
    slots: int
    memory_bytes: int
    cpus: float
    engine_version: str = ""
    demo_site: str = ""
    trouble: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """A run that is ours, as the database has it now."""

    run_id: int
    attempt: int
    token: int
    state: str
    stop_cause: str
    kill: bool = False
    pause: bool = False


def register(report: NodeReport, *, now: datetime) -> Node:
    """Make or take over the node's row. Whether it is cordoned is not the worker's to say."""
    fields = _fields(report)
    node, _made = Node.objects.update_or_create(
        name=report.name, defaults={**fields, "started_at": now, "heartbeat_at": now}
    )
    return node


def report_node(node_id: int, report: NodeReport) -> None:
    """Refresh what changes while a worker lives."""
    Node.objects.filter(pk=node_id).update(**_fields(report))


def _fields(report: NodeReport) -> dict[str, Any]:
    return {
        "executor": report.executor,
        "isolated": report.isolated,
        "slots": report.slots,
        "memory_bytes": report.memory_bytes,
        "cpus": report.cpus,
        "engine_version": report.engine_version,
        "demo_site": report.demo_site,
        "trouble": report.trouble,
        "warnings": list(report.warnings),
        "worker": report.worker,
    }


_RENEW = f"""
WITH alive AS (
    UPDATE runs_node SET heartbeat_at = now() WHERE id = %s
), locked AS MATERIALIZED (
    SELECT id FROM runs_run WHERE node_id = %s AND worker = %s AND state = ANY(%s) ORDER BY id FOR NO KEY UPDATE
), renewed AS (
    UPDATE runs_run r SET lease_until = now() + interval '{LEASE_SECONDS} seconds' FROM locked WHERE r.id = locked.id
)
SELECT clock_timestamp()
"""  # noqa: S608


def renew(node_id: int, worker: str) -> datetime:
    """One statement keeps the node alive and all its runs ours; returns the database's time."""
    with connection.cursor() as cursor:
        cursor.execute(_RENEW, [node_id, node_id, worker, list(PLACED)])
        at: datetime = cursor.fetchone()[0]
    return at


@dataclass(frozen=True, slots=True)
class Glance:
    """What stands on the node: `ours` is held by the asking worker, `others` has those of other workers whose runs may
    be orphans; `waiting` says that some run is queued anywhere, `retry_due` that one may be queued again."""

    ours: list[Held]
    others: set[str]
    expired: bool
    waiting: bool
    retry_due: bool


_GLANCE = """
SELECT id, attempt, token, state, stop_cause, kill_requested_at IS NOT NULL, pause_requested_at IS NOT NULL, worker,
       coalesce(lease_until < now(), true)
FROM runs_run WHERE node_id = %s AND state = ANY(%s)
UNION ALL
(SELECT 0, 0, 0, 'queued', '', false, false, '', false FROM runs_run WHERE state = 'queued' LIMIT 1)
UNION ALL
(SELECT 0, 0, 0, 'retry_wait', '', false, false, '', false FROM runs_run
 WHERE state = 'retry_wait' AND retry_at <= now() LIMIT 1)
"""


def glance(node_id: int, worker: str) -> Glance:
    """One cheap statement, for it is asked every second of an idle panel's life."""
    with connection.cursor() as cursor:
        cursor.execute(_GLANCE, [node_id, list(PLACED)])
        rows = cursor.fetchall()
    placed = [row for row in rows if row[3] in PLACED]
    states = {row[3] for row in rows}
    return Glance(
        ours=[Held(*row[:7]) for row in placed if row[7] == worker],
        others={row[7] for row in placed} - {worker},
        expired=any(row[8] for row in placed),
        waiting=State.QUEUED in states,
        retry_due=State.RETRY_WAIT in states,
    )


def is_ours(run_id: int, token: int) -> bool:
    """Nobody has taken the run from the holder of this token."""
    return Run.objects.filter(pk=run_id, token=token, state__in=PLACED).exists()


# So many workers that die one after another within so short a time while they look after a run: it is what kills them.
POISON_DEATHS = 3
POISON_SPAN = timedelta(seconds=180)
# What stands in a lease that its worker has laid down itself, before it left.
_LAID_DOWN = "to_timestamp(0)"
# A lease of NULL was never renewed: its worker died between the claim and the first heartbeat.
_ORPHANS = f"""
SELECT id, attempt, token, state, stop_cause, worker, coalesce(lease_until = {_LAID_DOWN}, false) FROM runs_run
WHERE node_id = %s AND state = ANY(%s) AND (lease_until IS NULL OR lease_until < now() OR worker = ANY(%s))
ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
"""  # noqa: S608


@transaction.atomic
def adopt(
    *, node: Node, worker: str, dead: Collection[str], now: datetime, poison_deaths: int = POISON_DEATHS
) -> list[Held]:
    """Take the node's runs whose worker has gone: a new token, the same attempt.

    One that has seen `poison_deaths` workers die one after another is told to end (0: never).
    """
    adopted = []
    with connection.cursor() as cursor:
        cursor.execute(_ORPHANS, [node.pk, list(PLACED), list(dead)])
        orphans = cursor.fetchall()
        for run_id, attempt, token, state, stop_cause, before, laid_down in orphans:
            cursor.execute(
                "UPDATE runs_run SET token = token + 1, worker = %s, lease_until = now() + %s * interval '1 second'"
                " WHERE id = %s",
                [worker, LEASE_SECONDS, run_id],
            )
            held = Held(run_id, attempt, token + 1, state, stop_cause)
            actor = Actor("agent", node.name)
            RunEvent.objects.create(
                run_id=run_id,
                at=now,
                kind="adopted",
                attempt=attempt,
                detail={"from": before, "to": worker, **({"left": True} if laid_down else {})},
                actor=str(actor),
            )
            if poison_deaths and not laid_down and _set_aside(held, poison_deaths, now, actor):
                held = replace(held, state=State.STOPPING, stop_cause="poison")
            adopted.append(held)
    return adopted


def _set_aside(held: Held, most: int, now: datetime, actor: Actor) -> bool:
    """Counted from what the history says of this attempt: a worker that left in peace is no death."""
    taken = RunEvent.objects.filter(run_id=held.run_id, kind="adopted", attempt=held.attempt)
    deaths = taken.filter(at__gt=now - POISON_SPAN).exclude(detail__has_key="left").count()
    return deaths >= most and move(
        run_id=held.run_id,
        to=State.STOPPING,
        frm=(State.STARTING, State.RUNNING, State.PAUSED),
        now=now,
        actor=actor,
        token=held.token,
        reason="poison",
        detail={"deaths": deaths},
        stop_requested_at=now,
        stop_cause="poison",
    )


def release(node_id: int, worker: str) -> None:
    """The worker leaves: whoever comes may adopt at once."""
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH locked AS MATERIALIZED (SELECT id FROM runs_run WHERE node_id = %s AND worker = %s"  # noqa: S608
            " AND state = ANY(%s) ORDER BY id FOR NO KEY UPDATE)"
            f" UPDATE runs_run r SET lease_until = {_LAID_DOWN} FROM locked WHERE r.id = locked.id",
            [node_id, worker, list(PLACED)],
        )


@transaction.atomic
def give_back(*, run_id: int, attempt: int, token: int, now: datetime, actor: Actor, why: str) -> bool:
    """The engine did not answer: back to the queue, the attempt is not spent."""
    moved = move(
        run_id=run_id,
        to=State.QUEUED,
        frm=(State.STARTING,),
        now=now,
        actor=actor,
        token=token,
        new_token=token + 1,
        reason="engine_unavailable",
        detail={"error": why},
        node=None,
        worker="",
        lease_until=None,
        attempt=attempt - 1,
    )
    if moved:
        Attempt.objects.filter(run_id=run_id, number=attempt).delete()
    return moved


_FENCED = """
INSERT INTO runs_runevent (run_id, at, kind, from_state, to_state, attempt, reason, detail, actor)
SELECT id, %s, 'fenced', '', '', %s, '', jsonb_build_object('from', %s::text, 'to', worker), %s
FROM runs_run WHERE id = %s
"""


def note_fenced(*, run_id: int, attempt: int, worker: str, now: datetime, actor: Actor) -> None:
    """Its holder has found out that the run is not its own any more, and keeps its hands off it."""
    with connection.cursor() as cursor:
        cursor.execute(_FENCED, [now, attempt, worker, str(actor), run_id])


@transaction.atomic
def mark_running(
    *,
    run_id: int,
    attempt: int,
    token: int,
    started_at: datetime,
    now: datetime,
    actor: Actor,
    ref: str,
    env: str,
    total_seconds: int | None = None,
) -> bool:
    """The attempt has started; False when somebody asked it to stop meanwhile, or it is not ours any more.

    The run's own start and the limit over all its attempts are those of the first.
    """
    ends_at = None if total_seconds is None else started_at + timedelta(seconds=total_seconds)
    moved = move(
        run_id=run_id,
        to=State.RUNNING,
        frm=(State.STARTING,),
        now=now,
        actor=actor,
        token=token,
        started_at=Coalesce("started_at", Value(started_at), output_field=DateTimeField()),
        total_deadline_at=Coalesce("total_deadline_at", Value(ends_at), output_field=DateTimeField()),
        paused_seconds=0,
        paused_at=None,
        pause_requested_at=None,
        expires_at=None,
    )
    # Behind the move: who stores what it wrote locks the run before its attempt, too.
    Attempt.objects.filter(run_id=run_id, number=attempt, started_at=None, run__token=token).update(
        started_at=started_at, engine_ref=ref[:200], environment=env[:300]
    )
    if moved and attempt > 1:
        finishing.replace_items(run_id=run_id, attempt=attempt)
    return moved


def mark_paused(*, run_id: int, token: int, now: datetime, actor: Actor) -> datetime | None:
    """It is proven frozen. Since when it counts as paused; None when it does not."""
    if move(run_id=run_id, to=State.PAUSED, frm=(State.RUNNING,), now=now, actor=actor, token=token, paused_at=now):
        return now
    # Perhaps it was committed before, and the answer got lost.
    return Run.objects.filter(pk=run_id, token=token, state=State.PAUSED).values_list("paused_at", flat=True).first()


def mark_resumed(*, run_id: int, token: int, paused_at: datetime, now: datetime, actor: Actor) -> None:
    """It goes on. The time in between counts for no limit."""
    rest = max(timedelta(0), now - paused_at)
    move(
        run_id=run_id,
        to=State.RUNNING,
        frm=(State.PAUSED,),
        now=now,
        actor=actor,
        token=token,
        paused_at=None,
        paused_seconds=F("paused_seconds") + rest.total_seconds(),
        total_deadline_at=F("total_deadline_at") + rest,
        detail={"paused_seconds": round(rest.total_seconds(), 1)},
    )
