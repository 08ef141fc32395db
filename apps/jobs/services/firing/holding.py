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
    earlier: tuple[datetime, datetime, Hold] | None = None

    def of(self, schedule: Schedule, slot: datetime) -> Hold | None:
        """By the time that is due: one that fell into a pause is not made up for after it."""
        if self.everywhere is not None:
            return self.everywhere
        if is_paused(schedule, slot):
            return Hold("paused", {"by": schedule.paused_by, "why": schedule.paused_why})
        if self.earlier is None:
            return None
        since, until, hold = self.earlier
        return hold if since <= slot < until else None


def holds() -> Holds:
    clock = Clock.objects.filter(pk=1).first()
    if clock is not None and clock.off_since is not None:
        return Holds(_off(clock.off_by, clock.off_why))
    placement = Placement.objects.filter(maintenance_since__isnull=False).first()
    if placement is not None:
        return Holds(Hold("maintenance", {"by": placement.maintenance_by, "why": placement.maintenance_why}))
    last = clock.last_off if clock is not None else {}
    if not last:
        return Holds(None)
    span = datetime.fromisoformat(last["since"]), datetime.fromisoformat(last["until"])
    return Holds(None, (*span, _off(last["by"], last["why"])))


def _off(by: str, why: str) -> Hold:
    return Hold("scheduling_off", {"by": by, "why": why})
