"""Log lines out of packed chunks: only the chunks that can matter are read, only the rows that match are parsed."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import orjson
import zstandard
from django.db import connection
from django.db.models import Max, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from apps.runs.models import LogChunk, Run
from apps.runs.states import Level
from apps.runs.store import Row

# Chunks of a running spider are small, merged ones large: a query asks for more while the answers stay small.
_FIRST_BATCH, _LAST_BATCH, _BATCH_BYTES = 16, 512, 512 * 1024
PAGE_BYTES = 4 * 1024 * 1024
_LEVELS = tuple(Level)
_SPARSE = 8

_INDEX = """
SELECT min(first_line), max(last_line),
       sum((levels->>0)::bigint)::bigint, sum((levels->>1)::bigint)::bigint, sum((levels->>2)::bigint)::bigint,
       sum((levels->>3)::bigint)::bigint, sum((levels->>4)::bigint)::bigint, sum(raw_bytes)::bigint
FROM runs_logchunk WHERE month = %s AND run_id = %s AND (%s::integer IS NULL OR attempt = %s)
GROUP BY first_line / %s ORDER BY 1
"""


class LogBlock(NamedTuple):
    """A stretch of the log with its lines by level: enough to place any line in a filtered view."""

    first: int
    last: int
    debug: int
    info: int
    warning: int
    error: int
    critical: int
    bytes: int


@dataclass(frozen=True, slots=True)
class LogPage:
    """Matching rows in line order. All lines up to `scanned` (down to it, backwards) were looked at."""

    rows: list[Row]
    scanned: int
    complete: bool


class _Needle:
    """Plain text, found without regard to case, first in packed JSON bytes and then for certain in the text."""

    def __init__(self, search: str) -> None:
        self.text = search.encode("utf-8", "replace").decode().lower()
        self.json = orjson.dumps(self.text)[1:-1]
        # bytes.lower() knows only ASCII; that is enough unless another letter of the needle has two cases.
        self.plain = all(char.isascii() or char.lower() == char.upper() for char in self.text)

    def within(self, row: Row) -> bool:
        return self.text in row[3].lower()

    def candidates(self, raw: bytes) -> Iterator[Row]:
        if not self.plain:
            if self.json.decode() in raw.decode().lower():
                yield from _parse(raw)
            return
        folded = raw.lower()
        at = folded.find(self.json)
        while at >= 0:
            start, end = raw.rfind(b"\n", 0, at) + 1, raw.find(b"\n", at)
            end = len(raw) if end < 0 else end
            yield tuple(orjson.loads(raw[start:end]))
            at = folded.find(self.json, end)


def log_index(run: Run, *, lines: int = 2000, attempt: int | None = None) -> list[LogBlock]:
    """The whole log as blocks of about `lines` lines, without reading any of them."""
    with connection.cursor() as cursor:
        cursor.execute(_INDEX, [run.month, run.pk, attempt, attempt, lines])
        return [LogBlock(*row) for row in cursor.fetchall()]


def lines_before(run: Run, *, attempt: int) -> int:
    """The last line of the attempts before this one."""
    earlier = LogChunk.objects.filter(month=run.month, run_id=run.pk, attempt__lt=attempt)
    return earlier.aggregate(last=Max("last_line"))["last"] or 0


def log_page(
    run: Run,
    *,
    after: int = 0,
    before: int | None = None,
    limit: int = 1000,
    level: int = 0,
    search: str = "",
    attempt: int | None = None,
    seconds: float | None = None,
    max_bytes: int = PAGE_BYTES,
) -> LogPage:
    """Rows with `after < line < before`, oldest first; ends early at `limit`, `max_bytes` or after `seconds`."""
    chunks = _forward(run, after, before, level, attempt)
    found: list[Row] = []
    scanned, size = after, 0
    needle = _Needle(search) if search else None
    until = None if seconds is None else time.monotonic() + seconds
    for chunk in chunks:
        for row in _matching(chunk, level, needle):
            if row[0] <= scanned:
                continue
            if before is not None and row[0] >= before:
                return LogPage(found, before - 1, complete=True)
            if len(found) >= limit or size > max_bytes:
                return LogPage(found, found[-1][0], complete=False)
            found.append(row)
            size += len(row[3])
        scanned = chunk.last_line
        if until is not None and time.monotonic() > until:
            return LogPage(found, scanned, complete=False)
    return LogPage(found, max(scanned, 0 if before is None else before - 1), complete=True)


def log_page_before(
    run: Run,
    *,
    before: int,
    limit: int = 1000,
    level: int = 0,
    search: str = "",
    attempt: int | None = None,
    seconds: float | None = None,
) -> LogPage:
    """The last rows with `line < before`, given oldest first."""
    found: list[Row] = []
    scanned, size = before, 0
    needle = _Needle(search) if search else None
    until = None if seconds is None else time.monotonic() + seconds
    for chunk in _backward(run, before, level, attempt):
        for row in reversed(list(_matching(chunk, level, needle))):
            if row[0] >= scanned:
                continue
            if len(found) >= limit or size > PAGE_BYTES:
                return LogPage(found[::-1], found[-1][0], complete=False)
            found.append(row)
            size += len(row[3])
        scanned = chunk.first_line
        if until is not None and time.monotonic() > until:
            return LogPage(found[::-1], scanned, complete=False)
    return LogPage(found[::-1], min(scanned, 1), complete=True)


def log_rows(
    run: Run, *, after: int = 0, limit: int = 1000, level: int = 0, search: str = "", attempt: int | None = None
) -> list[Row]:
    """The first rows behind line `after`; see `log_page` when it matters whether there are more."""
    return log_page(run, after=after, limit=limit, level=level, search=search, attempt=attempt).rows


def log_rows_before(
    run: Run, *, before: int, limit: int = 1000, level: int = 0, search: str = "", attempt: int | None = None
) -> list[Row]:
    return log_page_before(run, before=before, limit=limit, level=level, search=search, attempt=attempt).rows


def log_text(run: Run, *, attempt: int | None = None) -> Iterator[bytes]:
    """The log as it was printed, chunk by chunk."""
    done = 0
    for chunk in _forward(run, 0, None, 0, attempt):
        yield "".join(f"{row[3]}\n" for row in _parse(_unpack(chunk)) if row[0] > done).encode("utf-8", "replace")
        done = chunk.last_line


def _own(run: Run, level: int, attempt: int | None) -> QuerySet[LogChunk]:
    chunks = LogChunk.objects.filter(month=run.month, run_id=run.pk)
    if attempt is not None:
        chunks = chunks.filter(attempt=attempt)
    if level > Level.DEBUG:
        some = Q()
        for index, each in enumerate(_LEVELS):
            if each >= level:
                some |= Q(**{f"levels__{index}__gt": 0})
        chunks = chunks.filter(some)
    return chunks


def _forward(run: Run, after: int, before: int | None, level: int, attempt: int | None) -> Iterator[LogChunk]:
    """Chunks with a line behind `after`. Between two batches those of a finished run may be merged: a chunk can hold
    lines of the one before, and whoever reads leaves them out."""
    everything = LogChunk.objects.filter(month=run.month, run_id=run.pk)
    size = _FIRST_BATCH
    while True:
        # The chunk that holds line after+1 by the primary key: last_line has no index. Asked in the same statement, for
        # two may see a merge between them.
        holding = everything.filter(first_line__lte=after + 1).order_by("-first_line").values("first_line")[:1]
        start = Coalesce(Subquery(holding), 0)
        chunks = _own(run, level, attempt).filter(first_line__gte=start, last_line__gt=after)
        if before is not None:
            chunks = chunks.filter(first_line__lt=before)
        batch = list(chunks.order_by("first_line")[:size])
        yield from batch
        if len(batch) < size:
            return
        after, size = batch[-1].last_line, _next_size(size, batch)


def _backward(run: Run, before: int, level: int, attempt: int | None) -> Iterator[LogChunk]:
    size = _FIRST_BATCH
    while True:
        chunks = _own(run, level, attempt).filter(first_line__lt=before)
        batch = list(chunks.order_by("-first_line")[:size])
        yield from batch
        if len(batch) < size:
            return
        before, size = batch[-1].first_line, _next_size(size, batch)


def _next_size(size: int, batch: list[LogChunk]) -> int:
    small = sum(len(chunk.content) for chunk in batch) < _BATCH_BYTES
    return min(size * 2, _LAST_BATCH) if small else _FIRST_BATCH


def _matching(chunk: LogChunk, level: int, needle: _Needle | None) -> Iterator[Row]:
    raw = _unpack(chunk)
    if needle is not None:
        for row in needle.candidates(raw):
            if row[2] >= level and needle.within(row):
                yield row
        return
    wanted = sum(count for each, count in zip(_LEVELS, chunk.levels, strict=False) if each >= level)
    if wanted * _SPARSE < sum(chunk.levels):
        yield from _of_level(raw, level)
        return
    for row in _parse(raw):
        if row[2] >= level:
            yield row


def _of_level(raw: bytes, level: int) -> Iterator[Row]:
    """Few of many: parse only the lines that begin with such a level."""
    numbers = "|".join(str(int(each)) for each in _LEVELS if each >= level)
    for found in re.finditer(rf"^\[\d+,\d+,(?:{numbers}),.*$".encode(), raw, re.MULTILINE):
        yield tuple(orjson.loads(found[0]))


def _unpack(chunk: LogChunk) -> bytes:
    return zstandard.ZstdDecompressor().decompress(bytes(chunk.content))


def _parse(raw: bytes) -> Iterator[Row]:
    """All rows at once: a line feed inside a text is escaped, so each one in `raw` ends a row."""
    for row in orjson.loads(b"[" + raw.strip().replace(b"\n", b",") + b"]"):
        yield tuple(row)
