"""How the machines that run things are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import AnonymousUser
from django.contrib.contenttypes.models import ContentType
from django.db.models import Count, Model, QuerySet, Sum

from apps.accounts import rights
from apps.accounts.models import User
from apps.core.actors import Actor
from apps.runs.models import LEASE_EVENTS, Node, Placement, Pool, Run, RunEvent
from apps.runs.selectors.occupancy import promised_cpus
from apps.runs.selectors.runs import visible_runs_for_page
from apps.runs.states import PLACED

ALIVE = timedelta(seconds=30)
LEASE_SPAN = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """Of the nodes that have reported lately: all, those that start nothing, and those without isolation."""

    living: tuple[Node, ...]

    @property
    def no_worker(self) -> bool:
        return not self.living

    @property
    def troubled(self) -> list[Node]:
        return [node for node in self.living if node.trouble]

    @property
    def open(self) -> list[Node]:
        return [node for node in self.living if not node.isolated]


def node_health(*, now: datetime) -> NodeHealth:
    """One query; small enough for every page."""
    living = Node.objects.filter(heartbeat_at__gt=now - ALIVE).only("name", "trouble", "isolated", "heartbeat_at")
    return NodeHealth(tuple(living.order_by("name", "pk")))


@dataclass(frozen=True, slots=True)
class NodeGlance:
    """A node with what its runs take of it, counted now."""

    node: Node
    silent: bool
    runs: int
    memory_bytes: int
    cpus: float
    taken_over: int  # runs whose worker had gone, within LEASE_SPAN
    fenced: int  # runs a worker found taken by another, within LEASE_SPAN

    @property
    def state(self) -> str:
        """The one word that matters most: silent, trouble, draining, closed or ready."""
        if self.silent:
            return "silent"
        if self.node.trouble:
            return "trouble"
        if self.node.drain_until is not None:
            return "draining"
        return "closed" if self.node.cordoned_at is not None else "ready"

    @property
    def slots_percent(self) -> int:
        return _percent(self.runs, self.node.slots)

    @property
    def memory_percent(self) -> int:
        return _percent(self.memory_bytes, self.node.memory_bytes)

    @property
    def promised_cpus(self) -> float:
        """What its runs may ask for together."""
        return promised_cpus(self.node)

    @property
    def free_slots(self) -> int:
        return max(0, self.node.slots - self.runs)

    @property
    def free_memory_bytes(self) -> int:
        return max(0, self.node.memory_bytes - self.memory_bytes)


def _percent(part: float, whole: float) -> int:
    return min(100, round(100 * part / whole)) if whole else 0


def nodes_at_a_glance(*, now: datetime, nodes: Iterable[Node] | None = None) -> list[NodeGlance]:
    """By name."""
    found = list(Node.objects.order_by("name", "pk") if nodes is None else nodes)
    placed = Run.objects.filter(state__in=PLACED, node__in=found).order_by().values("node_id")
    used = {row["node_id"]: row for row in placed.annotate(n=Count("pk"), m=Sum("memory_bytes"), c=Sum("cpus"))}
    leases = RunEvent.objects.filter(kind__in=LEASE_EVENTS, at__gt=now - LEASE_SPAN).order_by()
    changed = Counter(
        {(actor, kind): n for actor, kind, n in leases.values_list("actor", "kind").annotate(Count("pk"))}
    )
    nothing: dict[str, Any] = {"n": 0, "m": 0, "c": 0.0}
    return [
        NodeGlance(
            node=node,
            silent=node.heartbeat_at <= now - ALIVE,
            runs=row["n"],
            memory_bytes=int(row["m"]),
            cpus=row["c"],
            taken_over=changed[actor, "adopted"],
            fenced=changed[actor, "fenced"],
        )
        for node in found
        for row, actor in ((used.get(node.pk, nothing), str(Actor("agent", node.name))),)
    ]


def runs_on(user: User | AnonymousUser, node: Node) -> tuple[list[Run], int]:
    """The runs the node holds that this person may see, oldest first; and how many others there are."""
    own = visible_runs_for_page(user).filter(node=node, state__in=PLACED).defer("spec", "stats", "output")
    shown = list(own.order_by("pk"))
    return shown, Run.objects.filter(node=node, state__in=PLACED).count() - len(shown)


@dataclass(frozen=True, slots=True)
class PoolGlance:
    """A pool with the runs that are in it now."""

    pool: Pool
    used: int
    jobs: int

    @property
    def percent(self) -> int:
        return _percent(self.used, self.pool.limit)


def pools_at_a_glance(pools: Iterable[Pool] | None = None) -> list[PoolGlance]:
    """By name."""
    counted = Pool.objects.annotate(job_count=Count("jobs")).order_by("name", "pk")
    if pools is not None:
        counted = counted.filter(pk__in=[pool.pk for pool in pools])
    # Of the runs that hold a place: there are never more of them than slots.
    used = Counter(
        pk
        for ids in Run.objects.filter(state__in=PLACED).exclude(pools=[]).values_list("pools", flat=True)
        for pk in set(ids)
    )
    return [PoolGlance(pool=pool, used=used[pool.pk], jobs=pool.job_count) for pool in counted]


def jobs_in(user: User | AnonymousUser, pool: Pool) -> tuple[list[Any], int]:
    """The jobs of the pool that this person may see, by name; and how many others there are."""
    own = rights.allowed(user, "view", pool.jobs.model).filter(pools=pool)
    shown = list(own.order_by("name", "pk"))
    return shown, pool.jobs.count() - len(shown)


def pool_names(ids: Collection[int]) -> list[str]:
    """Of those that still exist, by name."""
    return list(Pool.objects.filter(pk__in=ids).order_by("name").values_list("name", flat=True)) if ids else []


def maintenance() -> Placement | None:
    """While nothing new is started: since when, by whom and why."""
    return Placement.objects.filter(maintenance_since__isnull=False).first()


def changes_of(what: Model, *, most: int = 20) -> QuerySet[LogEntry]:
    """Who changed it, newest first."""
    kept = LogEntry.objects.filter(content_type=ContentType.objects.get_for_model(type(what)), object_id=str(what.pk))
    return kept.select_related("user").order_by("-action_time", "-pk")[:most]
