"""From the rows of django-celery-beat to what is fired."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from apps.jobs.models import Schedule


def recompile(*, schedule: Schedule, now: datetime) -> None:
    """Read one anew; see `recompile_all`."""
    recompile_all(schedules=[schedule], now=now)


def recompile_all(*, schedules: Sequence[Schedule], now: datetime) -> None:
    """Read them from their rows anew and reckon their next times from now on: what is past stays past.

    The caller holds the locks of the schedules. One that cannot be compiled is left with its trouble and without a
    next time.
    """
    raise NotImplementedError
