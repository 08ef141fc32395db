"""Log lines as they are stored: zstd-packed NDJSON rows `[line, at_ms, level, text]`."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from datetime import date, timedelta

import orjson
import zstandard
from django.db import connection, transaction

from apps.runs.models import LogChunk

Row = tuple[int, int, int, str]

LEVELS = (10, 20, 30, 40, 50)
MERGED_BYTES = 256 * 1024
MOST_MERGED = 400

# A compressor is not safe to share between threads, and costs more to make than a small chunk to pack.
_local = threading.local()


def pack_rows(rows: Sequence[Row]) -> tuple[bytes, int]:
    """The packed rows and their size before."""
    raw = b"\n".join(map(orjson.dumps, rows))
    packer = getattr(_local, "packer", None)
    if packer is None:
        packer = _local.packer = zstandard.ZstdCompressor(level=3)
    return packer.compress(raw), len(raw)


def unpack_rows(content: bytes | memoryview) -> list[Row]:
    unpacker = getattr(_local, "unpacker", None)
    if unpacker is None:
        unpacker = _local.unpacker = zstandard.ZstdDecompressor()
    raw = unpacker.decompress(bytes(content))
    # A newline stands between rows only (JSON escapes it inside of one): one call parses them all.
    return list(map(tuple, orjson.loads(b"[" + raw.replace(b"\n", b",") + b"]")))


def count_levels(rows: Iterable[Row]) -> list[int]:
    """How many of each level, in the order of LEVELS."""
    counts = dict.fromkeys(LEVELS, 0)
    for row in rows:
        counts[row[2]] += 1
    return list(counts.values())


def keep_partitions(*, today: date) -> None:
    """Make the partitions of this and the next month."""
    following = (today.replace(day=1) + timedelta(days=32)).replace(day=1)
    with connection.cursor() as cursor:
        for day in (today, following):
            cursor.execute("SELECT claw_keep_partitions(%s)", [day])


def merge_chunks(run_id: int) -> int:
    """Pack the many small chunks of a finished run into few; returns how many are left. Safe to repeat."""
    chunks = LogChunk.objects.filter(run_id=run_id)
    months = list(chunks.values_list("month", flat=True).distinct())
    left = 0
    for month in months:
        after = 0
        while True:
            group = _next_group(run_id, month, after)
            if not group:
                break
            after = group[-1].last_line
            left += 1
            if len(group) > 1:
                _replace(group)
    return left


def _next_group(run_id: int, month: date, after: int) -> list[LogChunk]:
    """Neighbouring chunks of one attempt that are about MERGED_BYTES together."""
    rows = LogChunk.objects.filter(month=month, run_id=run_id, first_line__gt=after).order_by("first_line")
    group: list[LogChunk] = []
    size = 0
    for chunk in rows[:MOST_MERGED]:
        if group and (chunk.attempt != group[0].attempt or size + chunk.raw_bytes > MERGED_BYTES):
            break
        group.append(chunk)
        size += chunk.raw_bytes
    return group


@transaction.atomic
def _replace(group: Sequence[LogChunk]) -> None:
    rows = [row for chunk in group for row in unpack_rows(chunk.content)]
    content, raw_bytes = pack_rows(rows)
    first = group[0]
    same = LogChunk.objects.filter(month=first.month, run_id=first.run_id)
    same.filter(first_line__in=[chunk.first_line for chunk in group]).delete()
    LogChunk(
        month=first.month,
        run_id=first.run_id,
        first_line=first.first_line,
        last_line=group[-1].last_line,
        attempt=first.attempt,
        levels=count_levels(rows),
        first_at=first.first_at,
        last_at=group[-1].last_at,
        raw_bytes=raw_bytes,
        content=content,
    ).save(force_insert=True)
