"""Spans of time in words."""

from __future__ import annotations

from django.utils.translation import ngettext


def span(seconds: int) -> str:
    """Such as "1 hour 30 minutes"; only what is not zero."""
    days, rest = divmod(seconds, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    parts = []
    if days:
        parts.append(ngettext("%(n)d day", "%(n)d days", days) % {"n": days})
    if hours:
        parts.append(ngettext("%(n)d hour", "%(n)d hours", hours) % {"n": hours})
    if minutes:
        parts.append(ngettext("%(n)d minute", "%(n)d minutes", minutes) % {"n": minutes})
    if rest or not parts:
        parts.append(ngettext("%(n)d second", "%(n)d seconds", rest) % {"n": rest})
    return " ".join(parts)
