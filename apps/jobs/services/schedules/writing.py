"""Making, changing and deleting schedules."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from apps.core.actors import Actor
from apps.jobs.models import Job, Schedule


def create_schedule(
    *,
    job: Job,
    by: Actor,
    now: datetime,
    type: str,
    cron: str = "",
    every: int | str | None = None,
    at: datetime | None = None,
    timezone: str = "UTC",
    start_at: datetime | None = None,
    end_at: datetime | None = None,
    parameters: Mapping[str, Any] | None = None,
    jitter: int | str = 0,
    misfire: Mapping[str, Any] | None = None,
    enabled: bool = True,
    name: str = "",
) -> Schedule:
    """Spans are seconds or texts such as "1h30m"; misfire is {"policy", "grace", "cap", "spacing"}, any of them.

    Raises Invalid with the faults by these names (`misfire.grace`, `parameters.<path>`).
    """
    raise NotImplementedError


def update_schedule(
    *, schedule: Schedule, by: Actor, now: datetime, seen: datetime | None = None, **changes: Any
) -> Schedule:
    """Change any of what `create_schedule` takes; what is not named stays. The next time is reckoned from now.

    `seen` is the `updated_at` that the person had before their eyes: when somebody has changed it since, Conflict.
    """
    raise NotImplementedError


def set_enabled(*, schedule: Schedule, by: Actor, now: datetime, enabled: bool) -> Schedule:
    """Times that pass while it is off are no times at all. Twice is once."""
    return update_schedule(schedule=schedule, by=by, now=now, enabled=enabled)


def delete_schedule(*, schedule: Schedule, by: Actor, now: datetime) -> None:
    """With its rows of django-celery-beat; its runs and its ledger stay."""
    raise NotImplementedError
