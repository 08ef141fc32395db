"""The runs of a group that failed, once more."""

from __future__ import annotations

from datetime import datetime

from apps.core.actors import Actor
from apps.core.errors import Conflict
from apps.runs.models import Batch


class NothingFailed(Conflict):
    """There is nothing to run again."""

    code = "nothing_failed"


def run_failed_again(*, batch: Batch, by: Actor, now: datetime) -> Batch:
    """A new group of the same orders, those that failed, timed out, were lost or canceled; `origin` is the old one."""
    raise NotImplementedError
