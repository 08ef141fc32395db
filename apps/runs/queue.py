"""Which queued run starts next on a node that asks: placement is pull."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from django.db import DatabaseError, OperationalError, connection, transaction

from apps.core.actors import SYSTEM, Actor
from apps.runs.models import Attempt, Node, Run
from apps.runs.moves import move
from apps.runs.states import PLACED, State

logger = logging.getLogger(__name__)

LEASE_SECONDS = 20
# A run that has waited this long counts as one step more urgent.
AGEING_SECONDS = 600
# A run that does not fit beside the others holds back less urgent ones once it has waited this long.
RESERVE_AFTER = timedelta(minutes=10)
_SPARE_CANDIDATES = 8
_MOST_REFUSED = 100


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run that is now ours to start."""

    run_id: int
    attempt: int
    token: int
    run_dir: Path


# The oldest of each priority by index: which of them is next is a matter of nine times a few rows.
_HEADS = """
SELECT r.id, r.memory_bytes, r.queued_at,
       r.priority - extract(epoch FROM %(now)s - r.queued_at) / %(ageing)s AS urgency
FROM generate_series(0, 10) AS p(priority)
CROSS JOIN LATERAL (
    SELECT id, priority, queued_at, memory_bytes FROM runs_run
    WHERE state = 'queued' AND priority = p.priority AND memory_bytes <= %(most)s
    ORDER BY queued_at, id LIMIT %(limit)s
) r
ORDER BY urgency, r.queued_at, r.id
"""
_LOCK = "SELECT id, attempt, token FROM runs_run WHERE id = ANY(%s) AND state = 'queued' FOR NO KEY UPDATE SKIP LOCKED"
# The database's clock measures all leases, so that a machine whose clock is off neither steals nor loses one.
_LEASE = f"UPDATE runs_run SET lease_until = now() + interval '{LEASE_SECONDS} seconds' WHERE id = %s"  # noqa: S608


def claim(*, node: Node, worker: str, runs_home: Path, now: datetime, limit: int) -> list[Claimed]:
    """Take up to `limit` runs that fit the free places and memory of the node. The caller has checked its health."""
    with transaction.atomic():
        return _claim(node, worker, runs_home, now, limit)


def _claim(node: Node, worker: str, runs_home: Path, now: datetime, limit: int) -> list[Claimed]:
    # The lock on the own row makes two claimers of a node one after the other: what they count stays true.
    own = Node.objects.select_for_update(no_key=True).filter(pk=node.pk, cordoned_at=None, trouble="").first()
    if own is None:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), coalesce(sum(memory_bytes), 0) FROM runs_run WHERE node_id = %s AND state = ANY(%s)",
            [own.pk, list(PLACED)],
        )
        used, memory = cursor.fetchone()
    wanted = min(limit, own.slots - used)
    free = own.memory_bytes - int(memory)
    taken: list[Claimed] = []
    if wanted <= 0:
        return taken
    actor = Actor("agent", own.name)
    for run_id, attempt, token, need in _lock_candidates(own, wanted, free, now):
        if len(taken) == wanted:
            break
        if need > free:
            continue
        claimed = Claimed(run_id, attempt + 1, token + 1, runs_home / f"{run_id}-{attempt + 1}")
        if _take(claimed, own, worker, actor, now):
            taken.append(claimed)
            free -= need
    return taken


def _lock_candidates(node: Node, wanted: int, free: int, now: datetime) -> list[tuple[int, int, int, int]]:
    """(id, attempt, token, memory), the most urgent first, locked against other claimers."""
    heads = _heads(node.memory_bytes, wanted, now)
    # Less urgent ones must not take again and again what a large run waits for.
    waited = now - RESERVE_AFTER
    bar = min((head.urgency for head in heads if head.memory > free and head.queued_at < waited), default=math.inf)
    fitting = [head for head in heads if head.memory <= free and head.urgency <= bar]
    if len(fitting) < wanted and len(fitting) < len(heads):
        # The heads are too large for now: look behind them.
        fitting = [head for head in _heads(free, wanted, now) if head.urgency <= bar]
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [[head.run_id for head in fitting[: wanted + _SPARE_CANDIDATES]]])
        locked = {row[0]: row for row in cursor.fetchall()}
    return [(*locked[head.run_id], head.memory) for head in fitting if head.run_id in locked]


class _Head(NamedTuple):
    run_id: int
    memory: int
    queued_at: datetime
    urgency: float


def _heads(most: int, wanted: int, now: datetime) -> list[_Head]:
    values: dict[str, int | datetime] = {
        "now": now,
        "most": most,
        "ageing": AGEING_SECONDS,
        "limit": wanted + _SPARE_CANDIDATES,
    }
    with connection.cursor() as cursor:
        cursor.execute(_HEADS, values)
        return [_Head(run_id, memory, at, float(urgency)) for run_id, memory, at, urgency in cursor.fetchall()]


def _take(claimed: Claimed, node: Node, worker: str, actor: Actor, now: datetime) -> bool:
    """A row that cannot be started fails with a reason: it must not stand in the way of those behind it."""
    try:
        with transaction.atomic():
            moved = move(
                run_id=claimed.run_id,
                to=State.STARTING,
                frm=(State.QUEUED,),
                now=now,
                actor=actor,
                detail={"node": node.name},
                token=claimed.token - 1,
                new_token=claimed.token,
                node=node,
                worker=worker,
                attempt=claimed.attempt,
            )
            if not moved:
                return False
            Attempt.objects.create(
                run_id=claimed.run_id,
                number=claimed.attempt,
                node=node,
                executor=node.executor,
                run_dir=str(claimed.run_dir),
                claimed_at=now,
            )
            with connection.cursor() as cursor:
                cursor.execute(_LEASE, [claimed.run_id])
            return True
    except OperationalError:
        raise  # a full disk, a deadlock: not the row's fault, the next look tries again
    except DatabaseError as error:
        if connection.needs_rollback or connection.connection is None or connection.connection.closed:
            raise
        logger.exception("run %s cannot be started", claimed.run_id)
        move(
            run_id=claimed.run_id,
            to=State.FAILED,
            frm=(State.QUEUED,),
            now=now,
            actor=actor,
            reason="create_failed",
            detail={"error": str(error).partition("\n")[0]},
        )
        return False


def refuse_unplaceable(*, now: datetime, run_id: int | None = None) -> int:
    """Runs that need more memory than the largest living node has will never start: they fail with words, at once."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT max(memory_bytes), min(memory_bytes) FROM runs_node"
            " WHERE heartbeat_at > now() - interval '120 seconds'"
        )
        largest, smallest = cursor.fetchone()
    if not smallest:
        # No node lives, or one has not heard from its engine yet how much it has.
        return 0
    hopeless = Run.objects.filter(state=State.QUEUED, memory_bytes__gt=largest)
    if run_id is not None:
        hopeless = hopeless.filter(pk=run_id)
    refused = 0
    for pk, need in hopeless.values_list("pk", "memory_bytes")[:_MOST_REFUSED]:
        refused += move(
            run_id=pk,
            to=State.FAILED,
            frm=(State.QUEUED,),
            now=now,
            actor=SYSTEM,
            reason="unplaceable",
            detail={"memory_mb": need // 2**20, "largest_mb": largest // 2**20},
        )
    return refused
