"""The jobs of a batch as its page shows them: what each has come to, as far as the visitor may see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import AnonymousUser
from django.utils.translation import gettext as _

from apps.accounts.models import User
from apps.jobs import selectors
from apps.jobs.models import Condition
from apps.jobs.views.batch_graph import HEIGHT, WIDTH, Box, Drawing, Line, draw
from apps.runs.models import Batch, Run
from apps.runs.reasons import sentence
from apps.runs.selectors import visible_runs
from apps.runs.selectors.batches import BatchGraph, GraphNode, newest_finished
from apps.runs.selectors.waiting import why_they_wait
from apps.runs.states import State


@dataclass(frozen=True, slots=True)
class NodeView:
    """`run` is None when there is none, or none that the visitor may see. `said`: why it is as it is."""

    node: GraphNode
    name: str
    state: str
    run: Run | None
    job_id: int | None
    said: str = ""
    follows: tuple[str, ...] = ()

    @property
    def state_word(self) -> str:
        return str(State(self.state).label) if self.state in State.values else _("Never run")


@dataclass(frozen=True, slots=True)
class DrawnNode:
    box: Box
    view: NodeView


@dataclass(frozen=True, slots=True)
class DrawnGraph:
    drawing: Drawing
    nodes: list[DrawnNode]
    lines: list[Line]
    conditions: list[tuple[str, str]]
    root: str
    box_width: int = WIDTH
    box_height: int = HEIGHT


def nodes_of(batch: Batch, user: User | AnonymousUser, now: datetime) -> list[NodeView]:
    """In the order in which they run."""
    graph = BatchGraph.read(batch.graph)
    runs = _runs(batch, graph)
    seen = set(visible_runs(user).filter(pk__in=[run.pk for run in runs.values()]).values_list("pk", flat=True))
    jobs = selectors.visible_jobs(user).filter(pk__in=[node.job for node in graph.nodes.values()])
    names = dict(jobs.values_list("pk", "name"))
    waits = why_they_wait([run for run in runs.values() if run.pk in seen], now)
    known = {
        key: node.name if node.job in names or (key in runs and runs[key].pk in seen) else _hidden_name(node)
        for key, node in graph.nodes.items()
    }
    views = []
    for key in graph.order():
        node, run = graph.nodes[key], runs.get(key)
        shown = run if run is not None and run.pk in seen else None
        views.append(
            NodeView(
                node=node,
                name=known[key],
                state=_state(node, run),
                run=shown,
                job_id=node.job if node.job in names else None,
                said=node.trouble or (waits.get(shown.pk) or sentence(shown) if shown else ""),
                follows=tuple(f"{known[edge.upstream]}: {Condition(edge.condition).label}" for edge in graph.into(key)),
            )
        )
    return views


def drawn(batch: Batch, views: list[NodeView]) -> DrawnGraph:
    by_key = {view.node.key: view for view in views}
    graph = BatchGraph.read(batch.graph)
    shown = BatchGraph(graph.root, {key: _named(view) for key, view in by_key.items()}, graph.edges)
    drawing = draw(shown)
    used = {line.edge.condition for line in drawing.lines}
    return DrawnGraph(
        drawing,
        [DrawnNode(box, by_key[box.key]) for box in drawing.boxes],
        list(drawing.lines),
        [(each.value, str(each.label)) for each in Condition if each.value in used],
        graph.root,
    )


def _named(view: NodeView) -> GraphNode:
    node = view.node
    return GraphNode(key=node.key, job=node.job, name=view.name, join=node.join, outside=node.outside)


def _runs(batch: Batch, graph: BatchGraph) -> dict[str, Run]:
    """Those of the batch, those taken over from an earlier one, and the newest of jobs outside."""
    rows = Run.objects.select_related("spider", "project").defer("stats", "output", "progress")
    found = {run.batch_key: run for run in rows.filter(batch=batch)}
    settled = {node.settled: key for key, node in graph.nodes.items() if node.settled}
    found |= {settled[run.pk]: run for run in rows.filter(pk__in=settled)}
    for key, node in graph.nodes.items():
        if node.outside:
            then = rows.filter(pk=node.last[0]).first() if node.last and batch.finished_at else None
            last = then or newest_finished(node.job)
            found |= {key: last} if last else {}
    return found


def _state(node: GraphNode, run: Run | None) -> str:
    if node.trouble:
        return State.FAILED
    if run is not None:
        return run.state
    return "" if node.outside else State.CANCELED


def _hidden_name(node: GraphNode) -> str:
    return f"#{node.job}"


def counts(views: list[NodeView]) -> Mapping[str, int]:
    """How many jobs of the batch itself are in which state."""
    found: dict[str, int] = {}
    for view in views:
        if not view.node.outside:
            found[view.state] = found.get(view.state, 0) + 1
    return found
