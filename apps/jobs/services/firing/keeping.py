"""What a process that fires remembers from one look at the clock to the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from apps.jobs.services.firing.transactions import Hook, run_hooks
from apps.jobs.services.firing.zones import Review

# A job that is locked is free again in no time, unless its holder is frozen.
BUSY_SECONDS = 0.3
LONGEST_SECONDS = 30.0
MOST_TRIES = 4
# Schedules that are taken at once.
MOST_AT_ONCE = 200


def _always() -> bool:
    return True


@dataclass(slots=True)
class Keeper:
    """`after_commit` gets what is to be done after a commit; `goes_on` says whether to go on with what is due.

    A schedule that could not be fired is put off for a while, so that it never stands in the way of others.
    """

    after_commit: Callable[[list[Hook]], None] = run_hooks
    goes_on: Callable[[], bool] = _always
    at_once: int = MOST_AT_ONCE
    review: Review = field(default_factory=Review)
    _until: dict[int, float] = field(default_factory=dict)
    _tries: dict[int, int] = field(default_factory=dict)

    def slow(self) -> None:
        """The machine is too slow to do so many before the database loses patience."""
        self.at_once = max(1, self.at_once // 4)

    def quick(self) -> None:
        self.at_once = min(MOST_AT_ONCE, 2 * self.at_once)

    def put_off(self, schedule_id: int, seconds: float = BUSY_SECONDS) -> None:
        self._until[schedule_id] = time.monotonic() + seconds

    def failed(self, schedule_id: int) -> int:
        """How often it has failed now; it is put off longer each time."""
        tries = self._tries[schedule_id] = self._tries.get(schedule_id, 0) + 1
        self.put_off(schedule_id, min(2.0 ** (tries - 1), LONGEST_SECONDS))
        return tries

    def done(self, schedule_id: int) -> None:
        self._tries.pop(schedule_id, None)

    def put_off_now(self) -> Collection[int]:
        now = time.monotonic()
        self._until = {pk: until for pk, until in self._until.items() if until > now}
        return self._until.keys()
