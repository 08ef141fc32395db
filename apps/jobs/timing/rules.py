"""When a schedule is due: one rule for firing, preview and checking."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from typing import Protocol
from zoneinfo import ZoneInfo

from cronsim import CronSim
from django.utils.translation import gettext as _

from apps.jobs.timing.cron_text import check_cron
from apps.jobs.timing.faults import BadRule
from apps.jobs.timing.zones import stretch_at, zone_of

MINUTE = timedelta(minutes=1)
# Ten years: a longer interval is a mistake, and far from the end of the calendar.
LONGEST_INTERVAL = 10 * 366 * 86400
# Nothing is scheduled outside: some zones cannot say their time on the first and last days of the calendar.
FIRST = datetime(1900, 1, 1, tzinfo=UTC)
LAST = datetime(9000, 1, 1, tzinfo=UTC)


class Rule(Protocol):
    """Instants in UTC, strictly increasing: whole minutes of a cron expression, whole seconds otherwise."""

    @property
    def zone(self) -> ZoneInfo: ...

    def after(self, instant: datetime) -> datetime | None:
        """The first one later than `instant`, never `instant` itself; None: there is none."""

    def between(self, start: datetime, end: datetime, most: int) -> list[datetime]:
        """Those with start < t <= end, oldest first, at most so many."""


class Walking(ABC):
    """`between` for rules that only know the next time."""

    @abstractmethod
    def after(self, instant: datetime) -> datetime | None: ...

    def between(self, start: datetime, end: datetime, most: int) -> list[datetime]:
        found: list[datetime] = []
        at = self.after(start)
        while at is not None and at <= end and len(found) < most:
            found.append(at)
            at = self.after(at)
        return found


@dataclass(frozen=True)
class Cron(Walking):
    """A cron expression in a zone.

    cronsim reads the fields and walks the calendar; it is only ever asked about local times without a zone, and what
    they are in UTC is decided here. (Given a zone, it steps over part of an hour when Lord Howe's clock moves by 30
    minutes, fires at a midnight that does not exist, and repeats times when it is asked anew inside a repeated hour.)
    """

    expression: str
    zone: ZoneInfo
    _cron: CronSim = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_cron", CronSim(self.expression, datetime(2000, 1, 1)))  # noqa: DTZ001  # local

    @cached_property
    def is_fixed(self) -> bool:
        """Fires at times on the wall clock; with a star for the minute or the hour, as time passes."""
        minute, hour, *_rest = self.expression.split()
        return not (minute.startswith("*") or hour.startswith("*"))

    def after(self, instant: datetime) -> datetime | None:
        # Seconds are cut off: times are whole minutes, and the next one is later than the minute that has begun.
        begun = instant.astimezone(UTC).replace(second=0, microsecond=0)
        if begun >= LAST:
            return None
        return self._fixed_after(begun) if self.is_fixed else self._passing_after(begun)

    def _fixed_after(self, begun: datetime) -> datetime | None:
        """Each local time once: the first of two, and the end of the gap for one that does not exist."""
        for local in self._locals_after(begun.astimezone(self.zone).replace(tzinfo=None)):
            at = local.replace(tzinfo=self.zone, fold=0).astimezone(UTC)
            if at.astimezone(self.zone).replace(tzinfo=None) != local:
                at = stretch_at(self.zone, at).start
            # Not later: it came already, before the clock was set back.
            if at > begun:
                return at
        return None

    def _passing_after(self, begun: datetime) -> datetime | None:
        """Each minute whose local time matches, in both passes of a repeated hour and never in a gap."""
        stretch = stretch_at(self.zone, begun)
        base = (begun + stretch.offset).replace(tzinfo=None)
        local = next(self._locals_after(base), None)
        while local is not None:
            at = local.replace(tzinfo=UTC) - stretch.offset
            if at < stretch.end:
                return at
            stretch = stretch_at(self.zone, stretch.end)
            start = (stretch.start + stretch.offset).replace(tzinfo=None)
            # Of a stretch that begins between the last place looked at and the match, the match is the first too.
            if not base < start <= local:
                local = next(self._locals_after(start - MINUTE), None)
            base = start - MINUTE
        return None

    def _locals_after(self, local: datetime) -> Iterator[datetime]:
        walk = copy.copy(self._cron)
        walk.dt = local
        return walk


@dataclass(frozen=True)
class Interval(Walking):
    """Every so many seconds as time passes, counted from an anchor, which is the first of them."""

    every_seconds: int
    anchor_at: datetime
    zone: ZoneInfo

    def after(self, instant: datetime) -> datetime | None:
        every = timedelta(seconds=self.every_seconds)
        if instant < self.anchor_at:
            return self.anchor_at
        at = self.anchor_at + ((instant - self.anchor_at) // every + 1) * every
        return at if at < LAST else None


@dataclass(frozen=True)
class Once(Walking):
    """A single time."""

    once_at: datetime
    zone: ZoneInfo

    def after(self, instant: datetime) -> datetime | None:
        return self.once_at if instant < self.once_at else None


def rule_of(
    *,
    type: str,  # as the model and the API call it
    expression: str = "",
    every_seconds: int | None = None,
    anchor_at: datetime | None = None,
    once_at: datetime | None = None,
    timezone: str = "UTC",
) -> Rule:
    """The rule of "cron", "interval" or "once", or BadRule. Cheap to ask again: rules are kept."""
    zone = zone_of(timezone)
    if type == "cron":
        return _cron(check_cron(expression), zone)
    if type == "interval":
        return _interval(every_seconds, anchor_at, zone)
    if type == "once":
        if once_at is None:
            raise BadRule("once_at", _("Say the date and time."))
        return Once(_second("once_at", once_at), zone)
    raise BadRule("type", _("“%(type)s” is no type of a schedule.") % {"type": str(type)[:40]})


# About 8 kB each.
@lru_cache(maxsize=2048)
def _cron(expression: str, zone: ZoneInfo) -> Cron:
    return Cron(expression, zone)


def _interval(every_seconds: int | None, anchor_at: datetime | None, zone: ZoneInfo) -> Interval:
    if isinstance(every_seconds, bool) or not isinstance(every_seconds, int):
        raise BadRule("every_seconds", _("Say the interval in whole seconds."))
    if every_seconds < 1:
        raise BadRule("every_seconds", _("An interval is at least one second."))
    if every_seconds > LONGEST_INTERVAL:
        raise BadRule("every_seconds", _("An interval is at most ten years."))
    if anchor_at is None:
        anchor_at = datetime(1970, 1, 1, tzinfo=UTC)
    return Interval(every_seconds, _second("anchor_at", anchor_at), zone)


def _second(name: str, instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise BadRule(name, _("Say the time zone of this time."))
    try:
        at = instant.astimezone(UTC).replace(microsecond=0)
    except OverflowError:
        at = LAST
    if not FIRST <= at < LAST:
        raise BadRule(name, _("This is too far away."))
    return at
