"""Taking runs from the queue for a node that asks."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.models.functions import Now

from apps.core.actors import Actor
from apps.runs.models import Attempt, Node, Placement
from apps.runs.moves import move
from apps.runs.queue.order import in_order
from apps.runs.selectors.occupancy import NODE_SILENT, occupancy
from apps.runs.states import State

logger = logging.getLogger(__name__)

LEASE_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run that is now ours to start."""

    run_id: int
    attempt: int
    token: int
    run_dir: Path


_LOCK = "SELECT attempt, token FROM runs_run WHERE id = %s AND state = 'queued' FOR NO KEY UPDATE SKIP LOCKED"
# The queue may have grown from nothing since the table was last analyzed; sorting what an index has in order already
# would cost what the queue is long. Compiling costs more than these statements ever take.
_OPEN = """
SELECT max_running, maintenance_since,
       set_config('enable_sort', 'off', true), set_config('enable_seqscan', 'off', true),
       set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true)
FROM runs_placement FOR NO KEY UPDATE
"""


def claim(*, node: Node, worker: str, runs_home: Path, now: datetime, limit: int) -> list[Claimed]:
    """Take up to `limit` runs that fit what is free of the node and of all limits. The caller has checked its health.

    Places, memory, CPUs and limits are counted here, over what runs; the lock on the one row of the placement makes
    claimers come one after the other, whatever node they ask for, so what they count stays true.
    """
    with transaction.atomic():
        placement = _locked_placement()
        own = _locked_node(node)
        if own is None or placement.maintenance_since is not None:
            return []
        return _claim(placement, own, worker, runs_home, now, limit)


def _locked_placement() -> Placement:
    with connection.cursor() as cursor:
        cursor.execute(_OPEN)
        row = cursor.fetchone()
        if row is None:
            # The first claim ever.
            Placement.objects.bulk_create([Placement()], ignore_conflicts=True)
            cursor.execute(_OPEN)
            row = cursor.fetchone()
    return Placement(max_running=row[0], maintenance_since=row[1])


def _locked_node(node: Node) -> Node | None:
    """Unless it is closed, or so silent that its runs are about to be given up."""
    own = Node.objects.select_for_update(no_key=True).filter(pk=node.pk, cordoned_at=None, trouble="")
    return own.filter(heartbeat_at__gt=Now() - NODE_SILENT).first()


def _claim(placement: Placement, node: Node, worker: str, runs_home: Path, now: datetime, limit: int) -> list[Claimed]:
    taken: list[Claimed] = []
    counts = occupancy(placement)
    wanted = min(limit, node.slots - counts.use_of(node).runs)
    if placement.max_running is not None:
        wanted = min(wanted, placement.max_running - counts.total)
    if wanted <= 0:
        return taken
    actor = Actor("agent", node.name)
    for run in in_order(node=node, occupancy=counts, now=now, wanted=wanted):
        with connection.cursor() as cursor:
            # Not waiting for who holds the row, for he may wait for one that is locked here.
            cursor.execute(_LOCK, [run.run_id])
            locked = cursor.fetchone()
        if locked is None:
            continue
        attempt, token = locked[0] + 1, locked[1] + 1
        claimed = Claimed(run.run_id, attempt, token, runs_home / f"{run.run_id}-{attempt}")
        if _take(claimed, node, worker, actor, now):
            taken.append(claimed)
            counts.place(run, node.pk)
            if len(taken) == wanted:
                break
    return taken


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
                # The database's clock measures all leases: a machine whose clock is off neither steals nor loses one.
                lease_until=Now() + timedelta(seconds=LEASE_SECONDS),
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
