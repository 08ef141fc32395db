"""Logs and items as if a run had left them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from apps.runs.models import Item, LogChunk, Run
from apps.runs.store import count_levels, pack_rows

MILLISECONDS = 1_800_000_000_000


def write_log(run: Run, rows: Sequence[tuple[int, str]], *, first: int = 1) -> None:
    """One chunk of (level, text)."""
    numbered = [(number, MILLISECONDS + number, level, text) for number, (level, text) in enumerate(rows, first)]
    content, raw_bytes = pack_rows(numbered)
    at = datetime.fromtimestamp(MILLISECONDS / 1000, UTC)
    LogChunk.objects.create(
        month=run.month,
        run_id=run.pk,
        first_line=first,
        last_line=first + len(rows) - 1,
        attempt=1,
        levels=count_levels(numbered),
        first_at=at,
        last_at=at,
        raw_bytes=raw_bytes,
        content=content,
    )


def write_items(run: Run, values: Sequence[Mapping[str, Any]]) -> None:
    Item.objects.bulk_create(
        Item(
            month=run.month,
            run_id=run.pk,
            seq=seq,
            attempt=1,
            dataset_id=run.job_id or 0,
            created_at=run.queued_at,
            data=value,
        )
        for seq, value in enumerate(values, 1)
    )
