"""What keeps due times from being fired although the clock came by in time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from apps.jobs.models import Clock, Schedule
from apps.jobs.selectors.due import is_paused
from apps.runs.models import Placement


@dataclass(frozen=True, slots=True)
class Hold:
    """The reason that the ledger gives, and values for its sentence."""

    reason: str
    detail: dict[str, str]


@dataclass(frozen=True, slots=True)
class Holds:
    """Of the whole panel; each schedule may be paused besides."""

    everywhere: Hold | None

    def of(self, schedule: Schedule, slot: datetime) -> Hold | None:
        """By the time that is due: one that fell into a pause is not made up for after it."""
        if self.everywhere is None and is_paused(schedule, slot):
            return Hold("paused", {"by": schedule.paused_by, "why": schedule.paused_why})
        return self.everywhere


def holds() -> Holds:
    clock = Clock.objects.filter(off_since__isnull=False).first()
    if clock is not None:
        return Holds(Hold("scheduling_off", {"by": clock.off_by, "why": clock.off_why}))
    placement = Placement.objects.filter(maintenance_since__isnull=False).first()
    if placement is not None:
        return Holds(Hold("maintenance", {"by": placement.maintenance_by, "why": placement.maintenance_why}))
    return Holds(None)
