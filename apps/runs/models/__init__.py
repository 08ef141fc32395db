"""What runs are and what they leave behind."""

from apps.runs.models.batch import Batch
from apps.runs.models.node import Node, Placement, Pool
from apps.runs.models.run import LEASE_EVENTS, Attempt, Run, RunEvent
from apps.runs.models.stored import Item, LogChunk, ResourceSample

__all__ = [
    "LEASE_EVENTS",
    "Attempt",
    "Batch",
    "Item",
    "LogChunk",
    "Node",
    "Placement",
    "Pool",
    "ResourceSample",
    "Run",
    "RunEvent",
]
