"""Form fields for time zones, and for times that are meant in one of them."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from django import forms
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

# Areas that are no places, and files of the zone data that are none.
_NO_PLACES = ("Etc/", "SystemV/", "posix/", "right/")
_NO_ZONES = {"Factory", "localtime"}


@cache
def zone_names() -> tuple[str, ...]:
    """What the box of a time zone offers: UTC, then places."""
    known = zoneinfo.available_timezones()
    places = (name for name in known if "/" in name and not name.startswith(_NO_PLACES))
    return ("UTC", *sorted(places))


class ZoneField(forms.CharField):
    """The name of a time zone, found with the search of the browser; written as the list has it."""

    def to_python(self, value: Any) -> Any:
        text = (super().to_python(value) or "").strip().replace(" ", "_")
        if not text:
            return text
        known = {name.lower(): name for name in zoneinfo.available_timezones() - _NO_ZONES}
        if text.lower() not in known:
            raise forms.ValidationError(_("“%(zone)s” is no time zone.") % {"zone": text[:64]}, code="zone")
        return known[text.lower()]


class WallClockField(forms.Field):
    """A date and a time as a clock on the wall shows them; the form says in which zone."""

    widget = forms.DateTimeInput

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.widget.input_type = "datetime-local"

    def to_python(self, value: Any) -> datetime | None:
        if value in self.empty_values:
            return None
        try:
            found = parse_datetime(str(value).strip())
        except ValueError:
            found = None
        if found is None or not 1970 <= found.year <= 9998:
            raise forms.ValidationError(_("Enter a date and a time."), code="moment")
        return found

    def prepare_value(self, value: Any) -> Any:
        """Seconds are shown where there are some: they must not be lost by saving."""
        if not isinstance(value, datetime):
            return value
        return value.replace(tzinfo=None).isoformat(timespec="seconds" if value.second else "minutes")


def in_zone(wall: datetime | None, zone: str) -> datetime | None:
    """The instant at which clocks of the zone show this; of two the first. There is none when the clock jumps over it.

    A time that was given with its own offset is an instant already.
    """
    if wall is None:
        return None
    if wall.tzinfo is not None:
        return wall.astimezone(UTC)
    local = wall.replace(tzinfo=zoneinfo.ZoneInfo(zone), fold=0)
    instant = local.astimezone(UTC)
    if instant.astimezone(local.tzinfo).replace(tzinfo=None) != wall:
        sentence = _("In %(zone)s the clock jumps over this time: it does not exist.")
        raise forms.ValidationError(sentence % {"zone": zone}, code="gap")
    return instant


def on_the_wall(instant: datetime | None, zone: str) -> datetime | None:
    """What clocks of the zone show at the instant; a zone that is not there (any more) shows UTC."""
    if instant is None:
        return None
    try:
        place: Any = zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        place = UTC
    return instant.astimezone(place).replace(tzinfo=None)


def next_full_hour(now: datetime, zone: str) -> datetime:
    wall = on_the_wall(now, zone)
    assert wall is not None  # noqa: S101 (there is an instant)
    return wall.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
