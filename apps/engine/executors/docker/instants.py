"""Instants as the Engine writes them."""

from __future__ import annotations

from datetime import datetime


def instant(text: str | None) -> datetime | None:
    """Docker writes nanoseconds, and the year 1 for "never"."""
    if not text or text.startswith("0001"):
        return None
    head, _, fraction = text.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{head}.{fraction[:6]:0<6}+00:00" if fraction else f"{head}+00:00")
