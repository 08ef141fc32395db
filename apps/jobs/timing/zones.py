"""Time zones: their names, and the instants at which their clocks are changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, available_timezones

from django.utils.translation import gettext as _

from apps.jobs.timing.faults import BadRule

# No zone changes its clock twice within so short a time and ends up where it was.
STEP = timedelta(hours=12)
SECOND = timedelta(seconds=1)
# "Factory" is a placeholder for a machine whose zone was never set.
NO_PLACES = frozenset({"Factory", "localtime", "posixrules"})


@cache
def zone_names() -> frozenset[str]:
    return frozenset(available_timezones() - NO_PLACES)


def zone_of(name: str) -> ZoneInfo:
    """The zone of that name, or BadRule at `timezone`."""
    if name not in zone_names():
        sentence = _("“%(name)s” is no time zone. Take a name such as Europe/Berlin or Asia/Shanghai.")
        raise BadRule("timezone", sentence % {"name": str(name)[:64]})
    return ZoneInfo(name)


def local_day(instant: datetime, zone: ZoneInfo | str) -> date:
    """The day that the calendar in the zone shows at that instant."""
    return instant.astimezone(zone_of(zone) if isinstance(zone, str) else zone).date()


@dataclass(frozen=True)
class Stretch:
    """A time without a change of clocks: from `start` up to, not including, `end`, at most to the end of the year."""

    start: datetime
    end: datetime
    offset: timedelta


@lru_cache(maxsize=4096)
def stretches(zone: ZoneInfo, year: int) -> tuple[Stretch, ...]:
    """A year (of UTC) cut at the changes of the zone's clock, which zoneinfo itself does not tell.

    Keyed by the zone object, not by its name: after an update of the zone's rules it is another one.
    """
    begin = start = datetime(year, 1, 1, tzinfo=UTC)
    finish = datetime(year + 1, 1, 1, tzinfo=UTC)
    offset = offset_at(zone, begin)
    found = []
    while begin < finish:
        ahead = min(begin + STEP, finish)
        if offset_at(zone, ahead) != offset:
            change = _change(zone, begin, ahead)
            found.append(Stretch(start, change, offset))
            start, offset = change, offset_at(zone, change)
            if start == finish:
                return tuple(found)
        begin = ahead
    return (*found, Stretch(start, finish, offset))


def stretch_at(zone: ZoneInfo, instant: datetime) -> Stretch:
    """The stretch that an instant (in UTC) lies in."""
    return next(each for each in stretches(zone, instant.year) if instant < each.end)


def offset_at(zone: ZoneInfo, instant: datetime) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta()


def changes_on(zone: ZoneInfo, day: date) -> bool:
    """Whether the clock is changed on that local day; a change at midnight belongs to both days."""
    noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    # Wide enough for the zones farthest from UTC.
    begin, end = noon - timedelta(hours=30), noon + timedelta(hours=30)
    for year in {begin.year, end.year}:
        for each in stretches(zone, year):
            if begin <= each.end <= end and offset_at(zone, each.end) != each.offset:
                before = (each.end - SECOND).astimezone(zone).date()
                if before <= day <= each.end.astimezone(zone).date():
                    return True
    return False


def _change(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """The second at which the clock is changed between two instants."""
    offset = offset_at(zone, before)
    low, high = 0, int((after - before).total_seconds())
    while high - low > 1:
        middle = (low + high) // 2
        if offset_at(zone, before + middle * SECOND) == offset:
            low = middle
        else:
            high = middle
    return before + high * SECOND
