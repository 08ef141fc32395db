"""Time zones: their names, and the days on which their clocks change."""

from __future__ import annotations

from datetime import date, datetime
from zoneinfo import ZoneInfo


def zone_of(name: str) -> ZoneInfo:
    """The zone of that name, or BadRule at `timezone`."""
    return ZoneInfo(name)


def local_day(instant: datetime, zone: ZoneInfo | str) -> date:
    """The day that the calendar in the zone shows at that instant."""
    return instant.astimezone(zone_of(zone) if isinstance(zone, str) else zone).date()
