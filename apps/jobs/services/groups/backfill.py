"""Runs for times of a schedule that lie in the past."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from apps.core.actors import Actor
from apps.jobs.models import Schedule
from apps.runs.models import Batch, Run

MOST_RUNS = 1000


@dataclass(frozen=True, slots=True)
class DueTime:
    """A time of the schedule, and the newest run that stands for it already, if any."""

    at: datetime
    run: Run | None = None


def preview_backfill(*, schedule: Schedule, start: datetime, end: datetime, now: datetime) -> list[DueTime]:
    """The times of the schedule's rule from `start` to `end`, both included, as it fires them."""
    raise NotImplementedError


def start_backfill(
    *,
    schedule: Schedule,
    by: Actor,
    now: datetime,
    start: datetime | None = None,
    end: datetime | None = None,
    instants: Sequence[datetime] | None = None,
    concurrency: int = 1,
    priority: int | None = None,
    again: bool = False,
) -> Batch:
    """One run for each time of the range, or for those `instants` of it; times that have a run are left out unless
    they are wanted `again`."""
    raise NotImplementedError
