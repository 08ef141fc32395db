"""What a measure gives: one row of the table."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(frozen=True)
class Figure:
    """One row of the table: what was measured, the value in words, the goal, and whether it was reached."""

    what: str
    value: str
    goal: str
    reached: bool

    def __str__(self) -> str:
        return f"| {self.what} | {self.value} | {self.goal} | {'yes' if self.reached else '**no**'} |"


def median_ms(seconds: Sequence[float]) -> float:
    return statistics.median(seconds) * 1000
