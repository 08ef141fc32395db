"""One plain sentence for every way a due time can go."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol


class Due(Protocol):
    """What a sentence needs to know of a row of the ledger."""

    scheduled_for: datetime
    until: datetime | None
    times: int
    outcome: str
    reason: str
    detail: Any


def sentence(due: Due) -> str:
    """What became of it and why, in the reader's language."""
    return due.reason
