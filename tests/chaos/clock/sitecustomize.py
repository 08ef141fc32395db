"""Moves the clock of a panel's worker by the seconds in the file that CLAW_CHAOS_CLOCK names, from its start on.

Python loads this by itself where it is on the path. Monotonic clocks go on as they are, as when a machine's is set.
"""

import datetime
import os
import time
from pathlib import Path


def shift() -> float:
    try:
        is_worker = b"\0worker\0" in Path("/proc/self/cmdline").read_bytes()
        return float(Path(os.environ["CLAW_CHAOS_CLOCK"]).read_text()) if is_worker else 0.0
    except (OSError, KeyError, ValueError):
        return 0.0


def move(seconds: float) -> None:
    real, real_time = datetime.datetime, time.time

    class OfAll(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, real)

        def __subclasscheck__(cls, other: type) -> bool:
            return issubclass(other, real)

    class Moved(real, metaclass=OfAll):
        """Makes real ones only: what is written in C knows no other."""

        def __new__(cls, *args, **kwargs):  # type: ignore[no-untyped-def]
            return real(*args, **kwargs)

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
            return real.now(tz) + datetime.timedelta(seconds=seconds)

        @classmethod
        def utcnow(cls) -> datetime.datetime:
            return real.now(datetime.UTC).replace(tzinfo=None) + datetime.timedelta(seconds=seconds)

    for name in ("fromtimestamp", "utcfromtimestamp", "strptime", "combine", "fromisoformat", "fromordinal"):
        setattr(Moved, name, getattr(real, name))
    datetime.datetime = Moved  # type: ignore[misc]
    time.time = lambda: real_time() + seconds


if by := shift():
    move(by)
