"""Pausing: due times are kept in the ledger as skipped until it ends."""

from __future__ import annotations

from datetime import datetime

from apps.core.actors import Actor
from apps.jobs.models import Schedule


def pause_schedule(
    *, schedule: Schedule, by: Actor, now: datetime, reason: str, until: datetime | None = None
) -> Schedule:
    """Said again it changes the reason and the end."""
    raise NotImplementedError


def resume_schedule(*, schedule: Schedule, by: Actor, now: datetime) -> Schedule:
    """Twice is once."""
    raise NotImplementedError
