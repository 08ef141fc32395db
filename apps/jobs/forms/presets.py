"""Times in everyday words: what the boxes of the form stand for as a cron expression, and the way back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import time
from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

SPREAD = "~"


class Kind(models.TextChoices):
    """What may be chosen; all but four of them are written as a cron expression."""

    HAND = "hand", _("Only by hand")
    HOURLY = "hourly", _("Every hour")
    DAILY = "daily", _("Every day")
    WORKDAYS = "workdays", _("Monday to Friday")
    WEEKLY = "weekly", _("Every week")
    MONTHLY = "monthly", _("Every month")
    INTERVAL = "interval", _("Every …")
    ONCE = "once", _("Once")
    CRON = "cron", _("Cron")


AT_A_TIME = (Kind.DAILY, Kind.WORKDAYS, Kind.WEEKLY, Kind.MONTHLY)
PRESETS = (Kind.HOURLY, *AT_A_TIME)


@dataclass(frozen=True, slots=True)
class Preset:
    """`minute` counts for hourly ones, `at` for the others; `spread`: the panel chooses the minute."""

    kind: Kind
    minute: int = 0
    at: time = time()
    weekdays: tuple[int, ...] = ()
    monthday: int = 1
    spread: bool = False

    @property
    def expression(self) -> str:
        if self.kind == Kind.HOURLY:
            return f"{SPREAD if self.spread else self.minute} * * * *"
        days = {
            Kind.DAILY: "* * *",
            Kind.WORKDAYS: "* * 1-5",
            Kind.WEEKLY: f"* * {','.join(map(str, self.weekdays))}",
            Kind.MONTHLY: f"{self.monthday} * *",
        }[self.kind]
        return f"{SPREAD if self.spread else self.at.minute} {self.at.hour} {days}"

    def boxes(self) -> dict[str, Any]:
        """What the boxes of the form hold."""
        boxes: dict[str, Any] = {"kind": str(self.kind), "spread": self.spread}
        if self.kind == Kind.HOURLY:
            return {**boxes, "minute": self.minute}
        boxes["time"] = self.at
        if self.kind == Kind.WEEKLY:
            boxes["weekdays"] = [str(day) for day in self.weekdays]
        if self.kind == Kind.MONTHLY:
            boxes["monthday"] = str(self.monthday)
        return boxes


_PLAIN = re.compile(r"(?P<minute>~|[0-9]{1,2}) (?P<hour>\*|[0-9]{1,2}) (?P<day>\*|[0-9]{1,2}) \* (?P<week>\S+)")
_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
}


def preset_of(expression: str) -> Preset | None:
    """The boxes that say the same as the expression, if there are any."""
    text = " ".join(expression.split())
    found = _PLAIN.fullmatch(_ALIASES.get(text, text))
    if found is None:
        return None
    minute, hour, day, week = found.group("minute", "hour", "day", "week")
    spread = minute == SPREAD
    if not spread and int(minute) > 59:
        return None
    number = 0 if spread else int(minute)
    if hour == "*":
        return Preset(Kind.HOURLY, minute=number, spread=spread) if (day, week) == ("*", "*") else None
    if int(hour) > 23:
        return None
    more: Mapping[str, Any] = {"at": time(int(hour), number), "spread": spread}
    if day != "*":
        known = week == "*" and 1 <= int(day) <= 31
        return Preset(Kind.MONTHLY, monthday=int(day), **more) if known else None
    return _of_weekdays(week, more)


def _of_weekdays(week: str, more: Mapping[str, Any]) -> Preset | None:
    if week == "*":
        return Preset(Kind.DAILY, **more)
    if week == "1-5":
        return Preset(Kind.WORKDAYS, **more)
    if not re.fullmatch(r"[0-7](?:,[0-7])*", week):
        return None
    days: Sequence[int] = sorted({int(day) % 7 for day in week.split(",")}, key=lambda day: (day - 1) % 7)
    return Preset(Kind.WEEKLY, weekdays=tuple(days), **more)
