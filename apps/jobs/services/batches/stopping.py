"""The end of a whole batch by a person."""

from __future__ import annotations

from datetime import datetime

from apps.core.actors import Actor
from apps.runs.models import Batch


def stop_batch(*, batch: Batch, by: Actor, now: datetime) -> None:
    """Cancel what waits and stop what is under way, of any kind of batch. A second time changes nothing."""
    raise NotImplementedError
