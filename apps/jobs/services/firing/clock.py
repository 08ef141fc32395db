"""One look at the clock: what is due is fired, what has changed is compiled anew."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Look:
    """What one look did, and when the next is worth while."""

    fired: int
    seconds: float


def look(*, now: datetime | None = None) -> Look:
    """Any number of processes may do so at once. `now` is for tests: otherwise the clock of the database counts."""
    raise NotImplementedError
