"""What a rule will do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from apps.jobs.timing.rules import Rule


@dataclass(frozen=True)
class Time:
    """A due time: in UTC, by the clock of the zone, and whether that clock is changed on that day."""

    at: datetime
    local: datetime
    clock_change: bool


def preview(rule: Rule, zone: ZoneInfo | str, after: datetime, count: int) -> list[Time]:
    """The next times after an instant."""
    raise NotImplementedError


def shortest_gap(rule: Rule, after: datetime, count: int = 50) -> float | None:
    """The seconds between the two closest of the next times; None when fewer than two are left."""
    raise NotImplementedError


def warning(rule: Rule, *, average_seconds: float | None, after: datetime) -> str:
    """A sentence when runs take longer on average than the shortest gap between two times; otherwise nothing."""
    raise NotImplementedError
