"""Log lines as they are stored: zstd-packed NDJSON rows `[line, at_ms, level, text]`."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from datetime import date, timedelta

import orjson
import zstandard
from django.db import connection

Row = tuple[int, int, int, str]

LEVELS = (10, 20, 30, 40, 50)
MERGED_BYTES = 256 * 1024

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
