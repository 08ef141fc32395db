"""What one step through a run's spools brings."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Any

from apps.runs.finishing import Ending
from apps.runs.store import Row


@dataclass(frozen=True, slots=True)
class Position:
    """How far a run is stored. What is stored next must begin exactly here, or nothing of it is."""

    out_offset: int = 0
    records_offset: int = 0
    out_cut: bool = False
    records_cut: bool = False
    lines: int = 0
    items: int = 0  # the number of the last one, discarded ones counted


@dataclass(slots=True)
class Batch:
    """One step through a run's spools, from `base` on."""

    run_id: int
    token: int
    attempt: int
    month: date
    dataset_id: int
    base: Position
    out_offset: int = 0
    records_offset: int = 0
    out_cut: bool = False
    records_cut: bool = False
    # (text, level), numbered when they are stored
    lines: list[tuple[str, int]] = field(default_factory=list)
    items: list[bytes] = field(default_factory=list)
    rejected: int = 0
    requests: int = 0
    progress: dict[str, Any] | None = None
    stats: dict[str, Any] | None = None
    output: dict[str, Any] | None = None
    damaged: bool = False
    ending: Ending | None = None
    rows: list[Row] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        moved = self.out_offset != self.base.out_offset or self.records_offset != self.base.records_offset
        return not (moved or self.lines or self.ending or self.damaged)

    @property
    def position(self) -> Position:
        """Where the run stands once this is stored."""
        return Position(
            self.out_offset,
            self.records_offset,
            self.out_cut,
            self.records_cut,
            self.base.lines + len(self.lines),
            self.base.items + len(self.items),
        )
