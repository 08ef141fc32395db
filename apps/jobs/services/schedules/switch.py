"""The one switch that stops all scheduling."""

from __future__ import annotations

from datetime import datetime

from apps.core.actors import Actor


def scheduling_off(*, by: Actor, now: datetime, why: str) -> None:
    """No schedule fires until it is on again. Said again it changes the reason only."""
    raise NotImplementedError


def scheduling_on(*, by: Actor, now: datetime) -> None:
    """Times that have passed stay skipped."""
    raise NotImplementedError
