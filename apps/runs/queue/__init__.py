"""Which queued run starts next on a node that asks: placement is pull."""

from apps.runs.queue.claim import LEASE_SECONDS, Claimed, claim
from apps.runs.queue.refusal import refuse_unplaceable

__all__ = ["LEASE_SECONDS", "Claimed", "claim", "refuse_unplaceable"]
