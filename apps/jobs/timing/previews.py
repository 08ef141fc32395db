"""What a rule will do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _

from apps.jobs.timing.rules import LAST, Interval, Rule
from apps.jobs.timing.spans import span
from apps.jobs.timing.zones import changes_on, zone_of


@dataclass(frozen=True)
class Time:
    """A due time: in UTC, by the clock of the zone, and whether that clock is changed on that day."""

    at: datetime
    local: datetime
    clock_change: bool


def preview(rule: Rule, zone: ZoneInfo | str, after: datetime, count: int) -> list[Time]:
    """The next times after an instant, by the very rule that fires."""
    shown = zone_of(zone) if isinstance(zone, str) else zone
    found = []
    for at in rule.between(after, LAST, count):
        local = at.astimezone(shown)
        found.append(Time(at, local, changes_on(shown, local.date())))
    return found


def shortest_gap(rule: Rule, after: datetime, count: int = 50) -> float | None:
    """The seconds between the two closest of the next times; None when fewer than two are left."""
    if isinstance(rule, Interval):
        return float(rule.every_seconds)
    times = rule.between(after, LAST, count)
    return min(((later - earlier).total_seconds() for earlier, later in pairwise(times)), default=None)


def warning(rule: Rule, *, average_seconds: float | None, after: datetime) -> str:
    """A sentence when runs take longer on average than the shortest gap between two times; otherwise nothing."""
    gap = shortest_gap(rule, after) if average_seconds else None
    if gap is None or average_seconds is None or average_seconds <= gap:
        return ""
    sentence = _("Runs of this job take %(average)s on average, but only %(gap)s lie between two of these times.")
    return sentence % {"average": span(round(average_seconds)), "gap": span(round(gap))}
