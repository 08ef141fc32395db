"""Whose turn it is in a batch."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from apps.core.actors import SYSTEM
from apps.jobs.models import Job
from apps.jobs.services.batches.deciding import Decision, Edge, Turn, decide
from apps.jobs.services.batches.stopping import stop_runs
from apps.jobs.services.groups.releasing import release
from apps.jobs.services.turns import give_turn
from apps.runs.models import Batch, Run
from apps.runs.selectors.batches import BatchGraph, GraphNode, newest_finished, runs_of, whose_turn_has_come
from apps.runs.services import move
from apps.runs.states import TERMINAL, State

logger = logging.getLogger(__name__)


@transaction.atomic
def settle(*, batch_id: int, now: datetime, wait: bool = True) -> None:
    """Let every run of the batch whose turn has come go, skip those that never will, and close the batch when all are
    over.

    All of it or nothing, under the lock of the batch's row: to be called again, by several at once or after a death in
    the middle does no harm. Without `wait`, a batch in other hands is left to them.
    """
    rows = Batch.objects.select_for_update(no_key=True, skip_locked=not wait)
    batch = rows.filter(pk=batch_id, finished_at=None).first()
    if batch is None:
        return
    if batch.canceled_at is not None:
        stop_runs(batch=batch, now=now)
    elif batch.kind == Batch.Kind.GRAPH:
        give_turns(batch=batch, now=now)
    else:
        release(batch=batch, now=now)
    if not Run.objects.filter(batch=batch).exclude(state__in=TERMINAL).exists():
        Batch.objects.filter(pk=batch.pk).update(finished_at=now)


def settle_open(*, now: datetime) -> int:
    """The same for every open batch: what a lost hint has left. How many were looked at."""
    batches = list(Batch.objects.filter(finished_at=None).order_by("pk").values_list("pk", flat=True))
    for pk in batches:
        try:
            settle(batch_id=pk, now=now, wait=False)
        except Exception:
            # One that is broken must not keep the others waiting; it is looked at again with the next round.
            logger.exception("batch %s could not be settled", pk)
    return len(batches)


# -- graphs ---------------------------------------------------------------------------------------------------------


def give_turns(*, batch: Batch, now: datetime) -> None:
    """One pass from the root down: a run that is skipped here decides about those behind it at once. The caller holds
    the lock on the batch's row."""
    graph = BatchGraph.read(batch.graph)
    runs = runs_of(batch)
    told = whose_turn_has_come(list(runs.values()))
    states = _states(graph, runs)
    for key in graph.order():
        run = runs.get(key)
        if key == graph.root or states.get(key) != State.WAITING or (run and run.pk in told):
            continue
        decision = decide(graph.nodes[key].join, _edges(graph, key, states))
        if decision.turn is Turn.GO and run is not None:
            give_turn(run=run, spec=run.spec, now=now)
        elif decision.turn is Turn.SKIP and run is not None:
            _skip(run, decision, graph, runs, now)
        if decision.turn is not Turn.WAIT:
            states[key] = _AFTER[decision.turn, run is not None]


# What a node is after its decision, by whether it has a run: one that could not be ordered fails when its turn comes.
_AFTER = {
    (Turn.GO, True): State.QUEUED,
    (Turn.GO, False): State.FAILED,
    (Turn.SKIP, True): State.SKIPPED,
    (Turn.SKIP, False): State.SKIPPED,
}


def _states(graph: BatchGraph, runs: Mapping[str, Run]) -> dict[str, str]:
    """What each node inside has come to. One without a run has lost it, and is neither a success nor a failure."""
    settled = {node.settled for node in graph.nodes.values() if node.settled}
    taken = dict(Run.objects.filter(pk__in=settled).values_list("pk", "state")) if settled else {}
    found: dict[str, str] = {}
    for key, node in graph.nodes.items():
        if node.trouble:
            found[key] = State.WAITING
        elif node.settled:
            found[key] = taken.get(node.settled, State.CANCELED)
        elif not node.outside:
            found[key] = runs[key].state if key in runs else State.CANCELED
    return found


def _edges(graph: BatchGraph, key: str, states: Mapping[str, str]) -> list[Edge]:
    edges = []
    for edge in graph.into(key):
        node = graph.nodes[edge.upstream]
        state = _outside(node)[1] if node.outside else states[edge.upstream]
        edges.append(Edge(edge.upstream, edge.condition, state, outside=node.outside))
    return edges


def _outside(node: GraphNode) -> tuple[int | None, str | None]:
    """Its newest finished run now; of a job that is deleted since, the newest of when the batch began."""
    last = newest_finished(node.job)
    if last is not None:
        return last.pk, last.state
    if node.last is not None and not Job.objects.filter(pk=node.job).exists():
        return node.last
    return None, None


def _skip(run: Run, decision: Decision, graph: BatchGraph, runs: Mapping[str, Run], now: datetime) -> None:
    unmet = [_told(edge, graph.nodes[edge.upstream], runs) for edge in decision.because]
    move(
        run_id=run.pk,
        to=State.SKIPPED,
        frm=(State.WAITING,),
        now=now,
        actor=SYSTEM,
        reason="upstream_failed",
        detail={"upstreams": unmet},
    )


def _told(edge: Edge, node: GraphNode, runs: Mapping[str, Run]) -> dict[str, Any]:
    """For the sentence of the skipped run."""
    run = runs.get(edge.upstream)
    run_id = _outside(node)[0] if node.outside else node.settled or (run.pk if run else None)
    return {"job": node.name, "run": run_id, "state": edge.state, "condition": edge.condition}
