"""What is taken of every limit, counted over the runs that hold a place. Asked by who takes runs from the queue, under
the lock of the placement, and by who says why a run waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple, Protocol

from django.db import connection

from apps.runs.models import Node, Placement
from apps.runs.states import PLACED, State

NODE_SILENT = timedelta(seconds=120)
# Crawlers wait more than they compute, so a node takes runs for twice the CPUs it has.
RUNS_PER_CPU = 2
# A run that has waited this long counts as one step more urgent.
AGEING_SECONDS = 600
# A run that does not fit beside the others holds back less urgent ones once it has waited this long.
RESERVE_AFTER = timedelta(minutes=10)
# A run of the job in one of these counts for the job's limit: between two attempts it is still the one that runs.
HOLDS_JOB = (*PLACED, State.RETRY_WAIT)


def literals(states: Iterable[State]) -> str:
    """For a query: with parameters in their place the planner could not tell which partial index it may use."""
    return ", ".join(f"'{state}'" for state in states)


class Takes(Protocol):
    """What a run takes where it is placed."""

    @property
    def project_id(self) -> int: ...
    @property
    def spider_id(self) -> int: ...
    @property
    def job_id(self) -> int | None: ...
    @property
    def pools(self) -> Sequence[int]: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def cpus(self) -> float: ...


class Needs(Takes, Protocol):
    """What placement compares of a queued run."""

    @property
    def job_limit(self) -> int | None: ...
    @property
    def selector(self) -> Mapping[str, str]: ...


class Gate(StrEnum):
    """Limits that hold on all nodes together."""

    JOB = "job"
    POOL = "pool"
    SPIDER = "spider"
    PROJECT = "project"
    TOTAL = "total"


class Lack(StrEnum):
    """What a node has not got for a run."""

    LABELS = "labels"
    PLACES = "places"
    MEMORY = "memory"
    CPUS = "cpus"


@dataclass(frozen=True, slots=True)
class FullGate:
    gate: Gate
    key: int
    used: int
    limit: int


@dataclass(slots=True)
class NodeUse:
    runs: int = 0
    memory_bytes: int = 0
    cpus: float = 0.0


def urgency(priority: int, waited_seconds: float) -> int:
    """The priority, less a step for each whole span of waiting: the smallest goes first."""
    return priority - max(0, int(waited_seconds // AGEING_SECONDS))


def has_labels(node: Node, selector: Mapping[str, str]) -> bool:
    return all(node.labels.get(name) == value for name, value in selector.items())


def promised_cpus(node: Node) -> float:
    """Who sets more places than two a CPU means that each of them is good for a usual run."""
    return max(node.cpus * RUNS_PER_CPU, float(node.slots))


def could_hold(node: Node, run: Needs) -> bool:
    """It would fit the empty node. One that has not yet heard from its engine what it has may turn out large enough."""
    memory = not node.memory_bytes or run.memory_bytes <= node.memory_bytes
    return memory and (not node.cpus or run.cpus <= node.cpus)


@dataclass(slots=True)
class Occupancy:
    """Counts of this transaction; `place` adds what is taken in it."""

    most: int | None = None
    total: int = 0
    nodes: dict[int, NodeUse] = field(default_factory=dict)
    used: dict[Gate, Counter[int]] = field(default_factory=lambda: {gate: Counter() for gate in Gate})
    limits: dict[Gate, dict[int, int]] = field(default_factory=lambda: {gate: {} for gate in Gate})
    # The jobs whose count is known; runs between two attempts are too many to be read for all jobs.
    known_jobs: set[int] = field(default_factory=set)

    def use_of(self, node: Node) -> NodeUse:
        return self.nodes.setdefault(node.pk, NodeUse())

    def place(self, run: Takes, node_id: int | None) -> None:
        use = self.nodes.setdefault(node_id or 0, NodeUse())
        use.runs += 1
        use.memory_bytes += run.memory_bytes
        use.cpus += run.cpus
        self.total += 1
        self.used[Gate.PROJECT][run.project_id] += 1
        self.used[Gate.SPIDER][run.spider_id] += 1
        self.used[Gate.POOL].update(set(run.pools))
        if run.job_id in self.known_jobs:
            self.used[Gate.JOB][run.job_id] += 1

    def learn_jobs(self, job_ids: Collection[int]) -> None:
        """Count the runs of these jobs that are under way."""
        unknown = set(job_ids) - self.known_jobs
        if not unknown:
            return
        with connection.cursor() as cursor:
            cursor.execute(_OF_JOBS, [list(unknown)])
            self.used[Gate.JOB].update(dict(cursor.fetchall()))
        self.known_jobs |= unknown

    def full_gates(self, run: Needs) -> Iterator[FullGate]:
        """Those that keep the run waiting, its own first. A pool that was deleted limits nothing."""
        if run.job_limit is not None and run.job_id is not None:
            self.learn_jobs((run.job_id,))
            used = self.used[Gate.JOB][run.job_id]
            if used >= run.job_limit:
                yield FullGate(Gate.JOB, run.job_id, used, run.job_limit)
        keys = [(Gate.POOL, pool) for pool in run.pools]
        keys += [(Gate.SPIDER, run.spider_id), (Gate.PROJECT, run.project_id)]
        for gate, key in keys:
            limit = self.limits[gate].get(key)
            if limit is not None and self.used[gate][key] >= limit:
                yield FullGate(gate, key, self.used[gate][key], limit)
        if self.most is not None and self.total >= self.most:
            yield FullGate(Gate.TOTAL, 0, self.total, self.most)

    def full(self, gate: Gate) -> list[int]:
        """Keys at their limit."""
        return [key for key, limit in self.limits[gate].items() if self.used[gate][key] >= limit]

    def free_memory(self, node: Node) -> int:
        return node.memory_bytes - self.use_of(node).memory_bytes

    def free_cpus(self, node: Node) -> float:
        """No more than it has at all. Sums of tenths are not exact: ten runs of a tenth are one CPU."""
        return min(node.cpus, round(promised_cpus(node) - self.use_of(node).cpus, 6))

    def lack(self, run: Needs, node: Node) -> Lack | None:
        """The first thing the node has not got now."""
        if not has_labels(node, run.selector):
            return Lack.LABELS
        if self.use_of(node).runs >= node.slots:
            return Lack.PLACES
        if run.memory_bytes > self.free_memory(node):
            return Lack.MEMORY
        return Lack.CPUS if run.cpus > self.free_cpus(node) else None


class _Placed(NamedTuple):
    project_id: int
    spider_id: int
    job_id: int | None
    pools: list[int]
    memory_bytes: int
    cpus: float


_PLACED = f"""
SELECT node_id, {", ".join(_Placed._fields)} FROM runs_run WHERE state IN ({literals(PLACED)})
"""  # noqa: S608
# First those that are under way, which are few, whatever the planner thinks of the history of these jobs.
_OF_JOBS = f"""
WITH under_way AS MATERIALIZED (
    SELECT job_id FROM runs_run WHERE NOT apart AND state IN ({literals(HOLDS_JOB)})
)
SELECT job_id, count(*) FROM under_way WHERE job_id = ANY(%s) GROUP BY job_id
"""  # noqa: S608
_LIMITS = f"""
SELECT '{Gate.PROJECT}', id, max_running FROM spiders_project WHERE max_running IS NOT NULL
UNION ALL SELECT '{Gate.SPIDER}', id, max_running FROM spiders_spider WHERE max_running IS NOT NULL
UNION ALL SELECT '{Gate.POOL}', id, "limit" FROM runs_pool
"""  # noqa: S608


def occupancy(placement: Placement | None) -> Occupancy:
    """Two queries, whatever is queued."""
    found = Occupancy(most=placement.max_running if placement else None)
    with connection.cursor() as cursor:
        cursor.execute(_LIMITS)
        for gate, key, limit in cursor.fetchall():
            found.limits[Gate(gate)][key] = limit
        cursor.execute(_PLACED)
        for node_id, *needs in cursor.fetchall():
            found.place(_Placed(*needs), node_id)
    return found
