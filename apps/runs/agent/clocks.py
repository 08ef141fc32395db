"""The time limits of a run that is followed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime

from apps.engine.types import Limits


def monotonic_of(at: datetime, now: datetime) -> float:
    """When `at` was by the monotonic clock. `now` is the database's time, which wrote `at`."""
    return time.monotonic() - (now - at).total_seconds()


@dataclass(slots=True)
class Clocks:
    """Seconds of the monotonic clock: no step of the machine's clock cuts a limit short.

    While a user has the run paused all of them stand still. `caught_up` says that what was written before we followed
    it has been read: until then nobody knows when it last gave a sign of life.
    """

    run_seconds: int | None = None
    idle_seconds: int | None = None
    pause_seconds: int | None = None
    run_end: float | None = None
    total_end: float | None = None
    last_sign: float | None = None
    caught_up: bool = False
    paused_since: float | None = None

    @classmethod
    def of(cls, limits: Limits) -> Clocks:
        return cls(limits.run_seconds, limits.idle_seconds, limits.pause_seconds)

    def begin(self, started: float, *, paused_seconds: float = 0.0) -> None:
        """It has run since `started`; of that it was paused for so long."""
        if self.run_seconds is not None:
            self.run_end = started + self.run_seconds + paused_seconds
        self.last_sign = max(self.last_sign or started, started)

    def heard(self, at: float) -> None:
        """It has written a line, an item or a request."""
        self.last_sign = at

    def pause(self, at: float) -> None:
        if self.paused_since is None:
            self.paused_since = at

    def resume(self, at: float) -> None:
        if self.paused_since is None:
            return
        rest = max(0.0, at - self.paused_since)
        self.paused_since = None
        self.run_end = None if self.run_end is None else self.run_end + rest
        self.total_end = None if self.total_end is None else self.total_end + rest
        self.last_sign = None if self.last_sign is None else min(at, self.last_sign + rest)

    def exceeded(self, now: float) -> str:
        """The cause for which it must end now, or nothing. The limit of all its attempts holds before it starts too."""
        if self.paused_since is not None:
            return ""
        return next((cause for cause, end in self._ends() if now >= end), "")

    def pause_is_over(self, now: float) -> bool:
        if self.paused_since is None or self.pause_seconds is None:
            return False
        return now - self.paused_since >= self.pause_seconds

    def seconds_left(self, now: float) -> float | None:
        """Until some limit is reached; None when none counts."""
        if self.paused_since is not None:
            return None
        return min((end - now for _cause, end in self._ends()), default=None)

    def _ends(self) -> list[tuple[str, float]]:
        idle_end = None
        if self.idle_seconds is not None and self.last_sign is not None and self.caught_up:
            idle_end = self.last_sign + self.idle_seconds
        ends = (("total_timeout", self.total_end), ("run_timeout", self.run_end), ("idle_timeout", idle_end))
        return [(cause, end) for cause, end in ends if end is not None]
