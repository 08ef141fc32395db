"""When a schedule is due: one rule for firing, preview and checking."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol
from zoneinfo import ZoneInfo


class Rule(Protocol):
    """Instants in UTC, strictly increasing: whole minutes of a cron expression, whole seconds otherwise."""

    @property
    def zone(self) -> ZoneInfo: ...

    def after(self, instant: datetime) -> datetime | None:
        """The first one later than `instant`, never `instant` itself; None: there is none."""

    def between(self, start: datetime, end: datetime, most: int) -> list[datetime]:
        """Those with start < t <= end, oldest first, at most so many."""


def rule_of(
    *,
    type: str,  # noqa: A002  # as the model and the API call it
    expression: str = "",
    every_seconds: int | None = None,
    anchor_at: datetime | None = None,
    once_at: datetime | None = None,
    timezone: str = "UTC",
) -> Rule:
    """The rule of "cron", "interval" or "once", or BadRule. Cheap to ask again: rules are kept."""
    raise NotImplementedError
