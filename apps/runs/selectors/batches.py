"""Batches, and the graph that is frozen in one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet

from apps.accounts import rights
from apps.accounts.models import User
from apps.runs.models import Batch, Run, RunEvent
from apps.runs.selectors.groups import Progress
from apps.runs.states import TERMINAL, State

# The event of a run whose turn has come: from then on it is prepared and queued, whatever else happens.
TURN = "turn"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """A job as it was when the batch began; its key is its id as text.

    `outside`: not a part of the batch, `last` is then its newest finished run of the time (id, state). `settled` is the
    run of an earlier batch that is taken over. `trouble`: it could not be ordered, and counts as failed.
    """

    key: str
    job: int
    name: str
    join: str = "all"
    outside: bool = False
    settled: int | None = None
    trouble: str = ""
    last: tuple[int, str] | None = None

    def stored(self) -> dict[str, Any]:
        optional = {"settled": self.settled, "trouble": self.trouble, "outside": self.outside, "last": self.last}
        return {"job": self.job, "name": self.name, "join": self.join} | {
            name: value for name, value in optional.items() if value
        }

    @classmethod
    def read(cls, key: str, stored: Mapping[str, Any]) -> GraphNode:
        last = stored.get("last")
        return cls(
            key=key,
            job=stored["job"],
            name=stored["name"],
            join=stored.get("join", "all"),
            outside=bool(stored.get("outside")),
            settled=stored.get("settled"),
            trouble=stored.get("trouble", ""),
            last=(last[0], last[1]) if last else None,
        )


@dataclass(frozen=True, slots=True)
class GraphEdge:
    upstream: str
    key: str
    condition: str


@dataclass(frozen=True, slots=True)
class BatchGraph:
    """Nodes by key and the edges between them; `root` is the key of the first."""

    root: str
    nodes: Mapping[str, GraphNode] = field(default_factory=dict)
    edges: Sequence[GraphEdge] = ()

    def stored(self) -> dict[str, Any]:
        """As `Batch.graph` keeps it."""
        return {
            "root": self.root,
            "nodes": {key: node.stored() for key, node in self.nodes.items()},
            "edges": [[edge.upstream, edge.key, edge.condition] for edge in self.edges],
        }

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> BatchGraph:
        nodes = {key: GraphNode.read(key, node) for key, node in stored.get("nodes", {}).items()}
        edges = tuple(GraphEdge(*edge) for edge in stored.get("edges", ()))
        return cls(stored.get("root", ""), nodes, edges)

    def into(self, key: str) -> list[GraphEdge]:
        """The edges by which `key` follows others."""
        return [edge for edge in self.edges if edge.key == key]

    def order(self) -> list[str]:
        """Keys, each behind all that it follows. What stands in a circle, which no saved graph has, is left out."""
        return [key for layer in self.layers() for key in layer]

    def layers(self) -> list[list[str]]:
        """Keys by the longest way that leads to them."""
        missing: dict[str, set[str]] = {key: set() for key in self.nodes}
        for edge in self.edges:
            missing[edge.key].add(edge.upstream)
        found: list[list[str]] = []
        while missing:
            layer = [key for key, upstreams in missing.items() if not upstreams]
            if not layer:
                break
            found.append(layer)
            missing = {key: upstreams - set(layer) for key, upstreams in missing.items() if key not in layer}
        return found

    def behind(self, keys: Sequence[str]) -> set[str]:
        """Everything that follows one of `keys`, by any number of steps; not they themselves."""
        following: dict[str, list[str]] = defaultdict(list)
        for edge in self.edges:
            following[edge.upstream].append(edge.key)
        found: set[str] = set()
        to_look = list(keys)
        while to_look:
            fresh = [key for key in following[to_look.pop()] if key not in found]
            found.update(fresh)
            to_look += fresh
        return found


def visible_batches(user: User | AnonymousUser, action: str = "view") -> QuerySet[Batch]:
    """The batches on which the user may do `action`, unordered, with what a row of them names."""
    return rights.allowed(user, action, Batch).select_related("project", "job", "requested_by")


def batch_state(batch: Batch, progress: Progress) -> State:
    """One word for all of it, that of a run."""
    if batch.finished_at is None:
        return State.RUNNING if batch.canceled_at is None else State.STOPPING
    if batch.canceled_at is not None:
        return State.CANCELED
    return State.FAILED if progress.failed else State.SUCCEEDED


def runs_of(batch: Batch) -> dict[str, Run]:
    """By their keys, with what deciding and showing need."""
    fields = ("state", "reason", "detail", "batch_key", "batch_id", "job_id", "job_name", "queued_at", "started_at")
    rows = Run.objects.filter(batch=batch).only(*fields, "finished_at", "attempt", "retry_at")
    return {run.batch_key: run for run in rows.order_by("pk")}


def whose_turn_has_come(runs: Sequence[Run]) -> set[int]:
    """Ids of those that were told to go; waiting ones among them are being prepared."""
    waiting = [run.pk for run in runs if run.state == State.WAITING]
    if not waiting:
        return set()
    return set(RunEvent.objects.filter(run__in=waiting, kind=TURN).values_list("run_id", flat=True))


def newest_finished(job_id: int) -> Run | None:
    """Of a job outside a batch: a run that was skipped is none that it has finished."""
    over = [state for state in TERMINAL if state != State.SKIPPED]
    return Run.objects.filter(job_id=job_id, state__in=over).order_by("-pk").first()


def upstream_runs(run: Run) -> dict[str, Run]:
    """The finished runs before this one in its batch by their keys; of a job outside it, its newest finished one."""
    if run.batch_id is None or run.batch is None:
        return {}
    graph = BatchGraph.read(run.batch.graph)
    before = {key for key in graph.nodes if run.batch_key in graph.behind([key])}
    found = {each.batch_key: each for each in Run.objects.filter(batch=run.batch_id, batch_key__in=before)}
    taken = {node.settled: node.key for node in _of(graph, before) if node.settled}
    found |= {taken[each.pk]: each for each in Run.objects.filter(pk__in=taken)}
    for node in _of(graph, before):
        if node.outside and (last := newest_finished(node.job)):
            found[node.key] = last
    return {key: each for key, each in found.items() if each.state in TERMINAL}


def _of(graph: BatchGraph, keys: set[str]) -> Iterator[GraphNode]:
    return (node for key, node in graph.nodes.items() if key in keys)
