"""What a run's frozen order says about trying again. Reading never raises: an old order is not refused any more."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

# What may be tried again, in the words of a job; which reasons belong to which is in retries.py.
CAUSES = ("exit", "oom", "timeout")
LONGEST_DELAY_SECONDS = 7 * 86400
MOST_ATTEMPTS = 100
_LARGEST_EXPONENT = 64


class Backoff(StrEnum):
    FIXED = "fixed"
    EXPONENTIAL = "exponential"
    LIST = "list"


class FailedItems(StrEnum):
    """What becomes of the items of an attempt that is followed by another."""

    KEEP = "keep"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """`attempts` counts the first one: 1 is no retry. Failures of the infrastructure have a budget of their own.

    Delays are seconds. `codes` (when not empty) are the only exit codes that are tried again, `never_codes` are not.
    """

    attempts: int = 1
    backoff: Backoff = Backoff.EXPONENTIAL
    delay_seconds: int = 30
    factor: float = 2.0
    cap_seconds: int = 3600
    delays: tuple[int, ...] = ()
    jitter: float = 0.1
    causes: tuple[str, ...] = CAUSES
    codes: tuple[int, ...] = ()
    never_codes: tuple[int, ...] = ()
    infrastructure: int = 3
    items: FailedItems = FailedItems.KEEP

    def as_spec(self) -> dict[str, Any]:
        """As it is frozen in an order and stored with a job."""
        return {
            "attempts": self.attempts,
            "backoff": str(self.backoff),
            "delay_seconds": self.delay_seconds,
            "factor": self.factor,
            "cap_seconds": self.cap_seconds,
            "delays": list(self.delays),
            "jitter": self.jitter,
            "causes": list(self.causes),
            "codes": list(self.codes),
            "never_codes": list(self.never_codes),
            "infrastructure": self.infrastructure,
            "items": str(self.items),
        }

    @classmethod
    def read(cls, stored: object) -> RetryPolicy:
        """What `as_spec` wrote, in part or whole; a value that makes no sense has its default."""
        given: Mapping[str, Any] = stored if isinstance(stored, Mapping) else {}
        known = {name: value for name, value in given.items() if name in _SENSIBLE and _SENSIBLE[name](value)}
        return cls(**{name: _READ.get(name, _as_it_is)(value) for name, value in known.items()})

    def delay(self, failures: int, *, chance: float | None = None) -> float:
        """Seconds before the attempt that follows the `failures`-th failure. `chance` in [0, 1) sets the jitter."""
        number = max(1, failures)
        if self.backoff is Backoff.LIST and self.delays:
            plain = float(self.delays[min(number, len(self.delays)) - 1])
        elif self.backoff is Backoff.EXPONENTIAL:
            plain = min(float(self.cap_seconds), self.delay_seconds * self._growth(number - 1))
        else:
            plain = float(self.delay_seconds)
        chance = random.random() if chance is None else chance  # noqa: S311 (spreads load, guards nothing)
        spread = plain * self.jitter
        delay = plain + spread * (2 * chance - 1)
        if self.backoff is Backoff.EXPONENTIAL:
            delay = min(delay, float(self.cap_seconds))
        return max(0.0, min(delay, float(LONGEST_DELAY_SECONDS)))

    def _growth(self, exponent: int) -> float:
        """Clamped: a float overflows long before a run has failed that often."""
        try:
            return self.factor ** min(exponent, _LARGEST_EXPONENT)
        except OverflowError:
            return float(LONGEST_DELAY_SECONDS)


def _as_it_is(value: Any) -> Any:
    return value


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_amount(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _all(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, (list, tuple)) and all(map(fits, value))


# By field: whether a stored value can be used, and how it is read.
_SENSIBLE: dict[str, Callable[[Any], bool]] = {
    "attempts": lambda value: _is_count(value) and value > 0,
    "backoff": lambda value: value in tuple(Backoff),
    "delay_seconds": _is_count,
    "factor": _is_amount,
    "cap_seconds": _is_count,
    "delays": _all(_is_count),
    "jitter": lambda value: _is_amount(value) and value <= 1,
    "causes": _all(lambda cause: cause in CAUSES),
    "codes": _all(_is_count),
    "never_codes": _all(_is_count),
    "infrastructure": _is_count,
    "items": lambda value: value in tuple(FailedItems),
}
_READ: dict[str, Callable[[Any], Any]] = {
    "backoff": Backoff,
    "items": FailedItems,
    **dict.fromkeys(("delays", "causes", "codes", "never_codes"), tuple),
}
