"""A batch once more, from where it failed."""

from __future__ import annotations

from datetime import datetime

from apps.core.actors import Actor
from apps.core.errors import Conflict
from apps.runs.models import Batch


class NothingToRepeat(Conflict):
    """It goes on still, or nothing in it failed."""

    code = "nothing_to_repeat"


def again_from_failed(*, batch: Batch, by: Actor, now: datetime) -> Batch:
    """A new batch of what failed and of all behind it; what went well is taken over. `origin` is the old one."""
    raise NotImplementedError
