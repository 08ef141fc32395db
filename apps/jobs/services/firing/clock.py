"""One look at the clock: what is due is fired, what has changed is compiled anew."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from apps.jobs.services.firing.compiling import compile_stale
from apps.jobs.services.firing.keeping import Keeper
from apps.jobs.services.firing.passes import fire_some
from apps.jobs.services.firing.stepping_back import note_clock
from apps.jobs.services.firing.transactions import is_connected
from apps.jobs.services.firing.zones import review_zones

logger = logging.getLogger(__name__)

# A change is seen within this time; what is due is looked for when it is due.
LOOK_SECONDS = 0.9
# After a look that found nothing to do although something is due: others hold it.
AGAIN_SECONDS = 0.2
SOON_SECONDS = 0.02
# So many passes over what is on time for one over what is late.
FRESH_PASSES = 10

_GLANCE = """
SELECT clock_timestamp(),
       (SELECT min(next_fire_at) FROM jobs_schedule WHERE enabled AND next_fire_at IS NOT NULL AND NOT stale),
       EXISTS (SELECT FROM jobs_schedule WHERE stale),
       (SELECT seen_at FROM jobs_clock WHERE id = 1)
"""


@dataclass(frozen=True, slots=True)
class Look:
    """How many schedules it moved on, and when the next look is worth while."""

    moved: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Glance:
    now: datetime
    next_fire_at: datetime | None
    stale: bool
    seen_at: datetime | None


def look(*, keeper: Keeper | None = None, now: datetime | None = None) -> Look:
    """Any number of processes may do so at once. `now` is for tests: otherwise the clock of the database counts."""
    keeper = keeper or Keeper()
    with connection.cursor() as cursor:
        cursor.execute(_GLANCE)
        clock, next_fire_at, stale, seen_at = cursor.fetchone()
    seen = _Glance(now or clock, next_fire_at, stale, seen_at)
    if _aside(lambda: note_clock(keeper=keeper, seen_at=seen.seen_at, now=seen.now)):
        return Look(0, 0.0)
    compiled = compile_stale(keeper=keeper, now=now) if seen.stale else 0
    is_due = seen.next_fire_at is not None and seen.next_fire_at <= seen.now
    moved = _fire_due(keeper, now) if is_due else 0
    if compiled or moved:
        return Look(moved, 0.0)
    if not is_due and _aside(lambda: review_zones(review=keeper.review, now=seen.now)):
        return Look(0, SOON_SECONDS)
    return Look(0, AGAIN_SECONDS if is_due else _until(seen))


def _aside(what: Callable[[], bool]) -> bool:
    """What goes wrong here must not keep due times from being fired."""
    try:
        return what()
    except Exception:
        if not is_connected():
            raise
        logger.exception("the clock goes on without this")
        return False


def _until(seen: _Glance) -> float:
    if seen.next_fire_at is None:
        return LOOK_SECONDS
    return min(LOOK_SECONDS, (seen.next_fire_at - seen.now).total_seconds())


def _fire_due(keeper: Keeper, now: datetime | None) -> int:
    """All that is due: first what is on time, and in between some of what is late."""
    moved = 0
    while keeper.goes_on():
        before = moved
        for _pass in range(FRESH_PASSES):
            done = fire_some(keeper=keeper, overdue=False, now=now).moved
            moved += done
            if not done or not keeper.goes_on():
                break
        moved += fire_some(keeper=keeper, overdue=True, now=now).moved
        if moved == before:
            break
    return moved
