"""How the machines that run things are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from apps.runs.models import Node

ALIVE = timedelta(seconds=30)


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
