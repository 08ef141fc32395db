"""Runs that no node can ever take."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from apps.core.actors import SYSTEM
from apps.runs.models import Node, Run
from apps.runs.moves import move
from apps.runs.selectors.occupancy import could_hold, has_labels
from apps.runs.states import State

MIB = 1024 * 1024
_MOST_REFUSED = 100


def refuse_unplaceable(*, now: datetime, run_ids: Collection[int] | None = None) -> int:
    """Runs that no known node could take if it were empty fail with words, at once.

    A node that is silent or closed for now counts: it may come back. Without any node nothing is known yet.
    """
    nodes = list(Node.objects.all())
    if not nodes:
        return 0
    queued = Run.objects.filter(state=State.QUEUED)
    if run_ids is not None:
        queued = queued.filter(pk__in=run_ids)
    refused = 0
    # Few different ones, however many are queued.
    for memory, cpus, selector in queued.values_list("memory_bytes", "cpus", "selector").distinct():
        shape = Run(memory_bytes=memory, cpus=cpus, selector=selector)
        if any(has_labels(node, selector) and could_hold(node, shape) for node in nodes):
            continue
        detail = _why(shape, nodes)
        alike = queued.filter(memory_bytes=memory, cpus=cpus, selector=selector).order_by("pk")
        for pk in list(alike.values_list("pk", flat=True)[: _MOST_REFUSED - refused]):
            refused += move(
                run_id=pk,
                to=State.FAILED,
                frm=(State.QUEUED,),
                now=now,
                actor=SYSTEM,
                reason="unplaceable",
                detail=detail,
            )
    return refused


def _why(run: Run, nodes: Sequence[Node]) -> dict[str, Any]:
    """Values for the sentence: the labels, when it asks for some, and what those nodes have too little of."""
    matching = [node for node in nodes if has_labels(node, run.selector)]
    detail: dict[str, Any] = {"selector": run.selector} if run.selector else {}
    if not matching:
        return detail
    memory = max(node.memory_bytes for node in matching)
    cpus = max(node.cpus for node in matching)
    small, weak = run.memory_bytes > memory, run.cpus > cpus
    if small or not weak:
        detail |= {"memory_mb": run.memory_bytes // MIB, "largest_mb": memory // MIB}
    if weak or not small:
        detail |= {"cpus": run.cpus, "most_cpus": cpus}
    return detail
