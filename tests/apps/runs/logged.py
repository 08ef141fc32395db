"""Logs and items of runs written straight into the store, cut into chunks as a test wants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from apps.runs.models import Item, LogChunk, Run
from apps.runs.store import Row, count_levels, pack_rows

AT_MS = 1_790_000_000_000


def row(line: int, text: str | None = None, level: int = 20) -> Row:
    return (line, AT_MS + line, level, f"line {line}" if text is None else text)


def store_rows(run: Run, rows: Sequence[Row], sizes: Iterable[int] = (), attempt: int = 1) -> None:
    """One chunk for each size, and one for the rest; the run's counters follow."""
    chunks, at = [], 0
    for size in (*sizes, len(rows)):
        part = list(rows[at : at + size])
        at += size
        if part:
            chunks.append(_chunk(run, part, attempt))
    LogChunk.objects.bulk_create(chunks)
    run.lines += len(rows)
    run.errors += sum(1 for each in rows if each[2] >= 40)
    if run.first_error_line is None:
        run.first_error_line = next((each[0] for each in rows if each[2] >= 40), None)
    run.save(update_fields=["lines", "errors", "first_error_line"])


def _chunk(run: Run, rows: list[Row], attempt: int) -> LogChunk:
    content, raw_bytes = pack_rows(rows)
    return LogChunk(
        month=run.month,
        run_id=run.pk,
        first_line=rows[0][0],
        last_line=rows[-1][0],
        attempt=attempt,
        levels=count_levels(rows),
        first_at=datetime.fromtimestamp(rows[0][1] / 1000, UTC),
        last_at=datetime.fromtimestamp(rows[-1][1] / 1000, UTC),
        raw_bytes=raw_bytes,
        content=content,
    )


def store_items(run: Run, values: Sequence[Any], first: int = 1, attempt: int = 1) -> None:
    Item.objects.bulk_create(
        Item(
            month=run.month,
            run_id=run.pk,
            seq=seq,
            attempt=attempt,
            dataset_id=run.job_id or 0,
            created_at=run.queued_at,
            data=value,
        )
        for seq, value in enumerate(values, first)
    )
    run.items += len(values)
    run.save(update_fields=["items"])
