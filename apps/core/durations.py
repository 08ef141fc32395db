"""Spans of time and amounts of memory as people write them."""

from __future__ import annotations

import re

from django.utils.translation import gettext as _

from apps.core.errors import Invalid

_UNITS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_NAMES = {
    "w": "w", "week": "w", "weeks": "w", "周": "w", "星期": "w",
    "d": "d", "day": "d", "days": "d", "天": "d", "日": "d",
    "h": "h", "hr": "h", "hour": "h", "hours": "h", "小时": "h", "时": "h",
    "m": "m", "min": "m", "minute": "m", "minutes": "m", "分": "m", "分钟": "m",
    "s": "s", "sec": "s", "second": "s", "seconds": "s", "秒": "s",
}  # fmt: skip
_SPAN = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([^\W\d_]*)\s*")
# No span needs more, and a text of megabytes would be read for seconds.
_LONGEST_TEXT = 100
_MEMORY = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([kmgt]?)(?:i?b)?\Z", re.IGNORECASE)
_MEBIBYTES = {"k": 1 / 1024, "": 1, "m": 1, "g": 1024, "t": 1024 * 1024}


class BadSpan(Invalid):
    code = "bad_duration"


class BadSize(Invalid):
    code = "bad_size"


def parse_duration(text: str) -> int:
    """Seconds of `1h30m`, `90 min`, `1.5 h`, `2 小时`; a bare number is seconds."""
    text = text.strip().lower()[: _LONGEST_TEXT + 1]
    if re.fullmatch(r"[0-9]{1,12}", text):
        return int(text)
    at, total = 0, 0.0
    while at < len(text):
        match = _SPAN.match(text, at)
        unit = _NAMES.get(match.group(2)) if match else None
        if match is None or unit is None:
            break
        total += float(match.group(1)) * _UNITS[unit]
        at = match.end()
    if not text or at < len(text) or len(text) > _LONGEST_TEXT:
        raise BadSpan(_("Enter a duration such as 90 s, 15 min or 1h30m."))
    return round(total)


def read_duration(value: object) -> int:
    """Seconds of a whole number, or of a text as people write it."""
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadSpan(_("Enter a duration such as 90 s, 15 min or 1h30m."))
    return value


def format_duration(seconds: int) -> str:
    """`1h 30m`: what `parse_duration` takes back."""
    if seconds <= 0:
        return "0s"
    parts = []
    for unit in ("d", "h", "m", "s"):
        count, seconds = divmod(seconds, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts)


def parse_megabytes(text: str) -> int:
    """Mebibytes of `512`, `512 MB`, `1.5 GiB`; people say MB and mean what the engine counts."""
    match = _MEMORY.match(text.strip())
    if match is None:
        raise BadSize(_("Enter an amount of memory such as 512 MB or 1.5 GB."))
    return round(float(match.group(1)) * _MEBIBYTES[match.group(2).lower()])


def format_megabytes(megabytes: int) -> str:
    if megabytes >= 1024 and megabytes % 512 == 0:
        return f"{megabytes / 1024:g} GB"
    return f"{megabytes} MB"
