"""Whether due times are waiting for somebody to fire them."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Min

from apps.jobs.models import Schedule

# A due time that is no later than this is on time, for every policy.
ON_TIME = timedelta(seconds=60)


def schedules_late(now: datetime) -> timedelta | None:
    """How late the oldest due time is that should have been fired; None while nothing is later than a minute."""
    due = Schedule.objects.filter(enabled=True, stale=False, next_fire_at__lt=now - ON_TIME)
    oldest: datetime | None = due.aggregate(oldest=Min("next_fire_at"))["oldest"]
    return None if oldest is None else now - oldest
