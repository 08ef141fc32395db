"""Dates and instants of templates: moved by days of the calendar or by elapsed time, and written in a format."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, tzinfo

from django.utils.translation import gettext as _

from apps.core.templating.faults import TemplateFault, bit

MOST_DAYS = 3660
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_DIRECTIVES = frozenset("YymdjHIMSfpaAbBuwVGzZ")
_WRITTEN = {"F": "%Y-%m-%d", "T": "%H:%M:%S"}
_OFFSET = re.compile(r"([+-]?)([0-9]{1,9})([smhdwM])")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_DAYS = {"d": 1, "w": 7}


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant, or a whole day beginning with it, in the time zone whose calendar counts."""

    at: datetime
    day: bool = False
    pattern: str = ""

    def shown(self) -> str:
        if self.pattern:
            return _DIRECTIVE.sub(lambda found: self._directive(found[1]), self.pattern)
        return self.at.date().isoformat() if self.day else self.at.isoformat(timespec="seconds")

    def _directive(self, letter: str) -> str:
        if letter == "%":
            return "%"
        if letter == "s":
            return str(int(self.at.timestamp()))
        if letter in "YG":
            # The C library does not pad years before 1000.
            return f"{self.at.year if letter == 'Y' else self.at.isocalendar().year:04d}"
        pattern = _WRITTEN.get(letter)
        if pattern:
            return replace(self, pattern=pattern).shown()
        return self.at.strftime(f"%{letter}")

    def formatted(self, pattern: str) -> Moment:
        return replace(self, pattern=pattern)

    def moved(self, offset: str) -> Moment:
        sign, count, unit = _read_offset(offset)
        steps = -count if sign == "-" else count
        if unit in _SECONDS and self.day:
            raise TemplateFault(
                _("“%(offset)s” moves by a time of day, which a date has not: take now or scheduled_for.")
                % {"offset": offset}
            )
        try:
            at = self._stepped(steps, unit)
        except (OverflowError, ValueError) as error:
            raise TemplateFault(_("The offset “%(offset)s” leads too far.") % {"offset": bit(offset)}) from error
        return replace(self, at=at)

    def _stepped(self, steps: int, unit: str) -> datetime:
        zone = self.at.tzinfo or UTC
        if unit in _SECONDS:
            moved = self.at.astimezone(UTC) + timedelta(seconds=steps * _SECONDS[unit])
            return moved.astimezone(zone)
        wall = self.at.replace(tzinfo=None, fold=0)
        wall = _months_on(wall, steps) if unit == "M" else wall + timedelta(days=steps * _DAYS[unit])
        if self.day:
            return wall.replace(tzinfo=zone)
        # By way of UTC: a time of day that this day skips becomes one that it has.
        return wall.replace(tzinfo=zone).astimezone(UTC).astimezone(zone)


def _months_on(wall: datetime, months: int) -> datetime:
    """The same day of another month, or that month's last one."""
    year, month = divmod(wall.year * 12 + wall.month - 1 + months, 12)
    month += 1
    return wall.replace(year=year, month=month, day=min(wall.day, calendar.monthrange(year, month)[1]))


def day_of(at: datetime, days: int = 0) -> Moment:
    """The local date of an instant, or of the one so many days after it."""
    wall = datetime.combine(at.date(), datetime.min.time(), tzinfo=at.tzinfo)
    return Moment(wall, day=True).moved(f"{days:+d}d") if days else Moment(wall, day=True)


def read_moment(text: str, zone: tzinfo) -> Moment | None:
    """A date or instant as other programs write it."""
    if len(text) > 40:
        return None
    try:
        if len(text) == 10:
            return Moment(datetime.combine(date.fromisoformat(text), datetime.min.time(), tzinfo=zone), day=True)
        at = datetime.fromisoformat(text)
        return Moment(at.astimezone(zone) if at.tzinfo else at.replace(tzinfo=zone))
    except (ValueError, OverflowError):
        return None


# -- checked when the template is read ------------------------------------------------------------------------------


def check_format(pattern: str) -> None:
    if not pattern:
        raise TemplateFault(_('A format is needed, as in date:"%%Y-%%m-%%d".') % {})
    for found in _DIRECTIVE.finditer(pattern):
        if found[1] not in _DIRECTIVES | {"%", "s", *_WRITTEN}:
            raise TemplateFault(
                _("“%(directive)s” means nothing in a date format.") % {"directive": bit(found[0] or "%")}
            )


def check_offset(text: str) -> None:
    _read_offset(text)


def _read_offset(text: str) -> tuple[str, int, str]:
    found = _OFFSET.fullmatch(text)
    if found is None:
        raise TemplateFault(
            _(
                "“%(offset)s” is no offset: write a number and s, m, h, d, w or M (seconds, minutes, hours, days,"
                " weeks, months), as in -7d."
            )
            % {"offset": bit(text)}
        )
    sign, count, unit = found[1], int(found[2]), found[3]
    days = count * 31 if unit == "M" else count * (_DAYS[unit] if unit in _DAYS else _SECONDS[unit] / 86400)
    if days > MOST_DAYS + 60 * (unit == "M"):
        raise TemplateFault(_("The offset “%(offset)s” is more than ten years.") % {"offset": bit(text)})
    return sign, count, unit
