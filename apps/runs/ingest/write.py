"""Stores what the agent read: log, items, counters, offsets and the end of a run in one guarded transaction."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
from django.db import DataError, IntegrityError, OperationalError, connection, transaction

from apps.core.actors import Actor
from apps.runs import store
from apps.runs.crash import crash_point
from apps.runs.finishing import Ending, finish
from apps.runs.ingest.batch import Batch
from apps.runs.moves import StaleRun
from apps.runs.states import Level, State

logger = logging.getLogger(__name__)

_TOO_COMPLEX = "54"  # PostgreSQL's class of limits: the record's fault, although it comes as an operational error


def store_batches(batches: Sequence[Batch], *, now: datetime, actor: Actor) -> list[Batch]:
    """One transaction for all; what is missing in the answer belongs to another agent or is over.

    A fault of the data costs one record: the work is done again run by run, then without the bad record.
    """
    if not batches:
        return []
    try:
        _store(batches, now, actor)
    except (StaleRun, DataError, IntegrityError, OperationalError) as error:
        if not _is_about_data(error):
            raise
        logger.info("%d runs are stored one by one: %s", len(batches), error)
    else:
        return list(batches)
    return [batch for batch in batches if _store_alone(batch, now, actor)]


def _store_alone(batch: Batch, now: datetime, actor: Actor) -> bool:
    try:
        _store([batch], now, actor)
    except StaleRun:
        return False
    except (DataError, IntegrityError, OperationalError) as error:
        if not _is_about_data(error):
            raise
        logger.warning("run %s wrote what the database refuses: %s", batch.run_id, error)
    else:
        return True
    for repair in (_drop_bad_records, _give_up):
        try:
            repair(batch)
            _store([batch], now, actor)
        except StaleRun:
            return False
        except (DataError, IntegrityError, OperationalError) as error:
            if repair is _give_up or not _is_about_data(error):
                raise
            logger.exception("run %s wrote what cannot be stored", batch.run_id)
        else:
            return True
    return False


def _give_up(batch: Batch) -> None:
    """Nothing of this step can be kept: the run ends with words instead of blocking all others for ever."""
    batch.lines = [("What the run wrote could not be stored.", Level.ERROR.value)]
    batch.items, batch.progress, batch.stats, batch.output = [], None, None, None
    batch.ending = Ending(State.FAILED, "storage_error", {})


def _is_about_data(error: Exception) -> bool:
    if isinstance(error, OperationalError):
        code = getattr(error.__cause__, "sqlstate", None) or ""
        return code.startswith(_TOO_COMPLEX)
    return True


def _drop_bad_records(batch: Batch) -> None:
    bad = _unstorable(batch.items, 0, len(batch.items))
    for index in reversed(bad):
        del batch.items[index]
    batch.rejected += len(bad)
    batch.lines += [("The database refused an item; it was dropped.", Level.WARNING.value)] * len(bad)
    for name in ("progress", "stats", "output"):
        value = getattr(batch, name)
        if value is not None and _unstorable([orjson.dumps(value)], 0, 1):
            setattr(batch, name, None)
            batch.lines.append((f"The database refused the run's {name}.", Level.WARNING.value))


def _unstorable(records: list[bytes], start: int, end: int) -> list[int]:
    """The indexes of what PostgreSQL's jsonb refuses, found by halving."""
    if start >= end:
        return []
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            texts = [record.decode() for record in records[start:end]]
            cursor.execute("SELECT count(t::jsonb) FROM unnest(%s::text[]) t", [texts])
    except (DataError, OperationalError) as error:
        if not _is_about_data(error):
            raise
        if end - start == 1:
            return [start]
    else:
        return []
    middle = (start + end) // 2
    return _unstorable(records, start, middle) + _unstorable(records, middle, end)


@transaction.atomic
def _store(batches: Sequence[Batch], now: datetime, actor: Actor) -> None:
    at_ms = int(now.timestamp() * 1000)
    for batch in batches:
        first = batch.base.lines + 1
        batch.rows = [(number, at_ms, level, text) for number, (text, level) in enumerate(batch.lines, first)]
    # Whoever lost the run since stops here: nothing of a batch is kept unless all of it is.
    _advance_runs(batches)
    _advance_attempts(batches)
    crash_point("storing")
    _copy_log(batches, now)
    _copy_items(batches, now)
    for batch in batches:
        if batch.ending is not None:
            _end(batch, batch.ending, now, actor)


_RUNS = """
WITH v AS (
    SELECT * FROM unnest(
        %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[],
        %s::bigint[], %s::bigint[], %s::bigint[], %s::boolean[], %s::text[], %s::text[], %s::text[]
    ) AS v(id, token, lines0, items0, lines, warnings, errors, items, rejected, requests, first_error, damaged,
           progress, stats, output)
), locked AS MATERIALIZED (
    -- All writers of several runs lock them by id, else two of them could wait for each other.
    SELECT r.id FROM runs_run r JOIN v ON v.id = r.id ORDER BY r.id FOR NO KEY UPDATE OF r
)
UPDATE runs_run r SET
    lines = r.lines + v.lines, warnings = r.warnings + v.warnings, errors = r.errors + v.errors,
    items = r.items + v.items, items_rejected = r.items_rejected + v.rejected, requests = r.requests + v.requests,
    first_error_line = coalesce(r.first_error_line, v.first_error), log_damaged = r.log_damaged OR v.damaged,
    progress = coalesce(v.progress::jsonb, r.progress), stats = coalesce(v.stats::jsonb, r.stats),
    output = coalesce(v.output::jsonb, r.output)
FROM v JOIN locked USING (id)
WHERE r.id = v.id AND r.token = v.token AND r.lines = v.lines0 AND r.items + r.items_discarded = v.items0
  AND r.state IN ('starting', 'running', 'paused', 'stopping')
RETURNING r.id
"""
_ATTEMPTS = """
UPDATE runs_attempt a SET
    out_offset = v.out1, records_offset = v.records1, out_cut = v.out_cut, records_cut = v.records_cut,
    lines = a.lines + v.lines, items = a.items + v.items
FROM unnest(
    %s::bigint[], %s::int[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::boolean[], %s::boolean[],
    %s::bigint[], %s::bigint[]
) AS v(run_id, number, out0, records0, out1, records1, out_cut, records_cut, lines, items)
WHERE a.run_id = v.run_id AND a.number = v.number AND a.out_offset = v.out0 AND a.records_offset = v.records0
RETURNING a.run_id
"""


def _advance_runs(batches: Sequence[Batch]) -> None:
    rows = []
    for batch in batches:
        levels = store.count_levels(batch.rows)
        first_error = None
        if levels[3] or levels[4]:
            first_error = next(row[0] for row in batch.rows if row[2] >= Level.ERROR)
        rows.append(
            (
                batch.run_id,
                batch.token,
                batch.base.lines,
                batch.base.items,
                len(batch.rows),
                levels[2],
                levels[3] + levels[4],
                len(batch.items),
                batch.rejected,
                batch.requests,
                first_error,
                batch.damaged,
                _json(batch.progress),
                _json(batch.stats),
                _json(batch.output),
            )
        )
    _guarded(_RUNS, rows, batches)


def _advance_attempts(batches: Sequence[Batch]) -> None:
    rows = [
        (
            batch.run_id,
            batch.attempt,
            batch.base.out_offset,
            batch.base.records_offset,
            batch.out_offset,
            batch.records_offset,
            batch.out_cut,
            batch.records_cut,
            len(batch.lines),
            len(batch.items),
        )
        for batch in batches
    ]
    _guarded(_ATTEMPTS, rows, batches)


def _guarded(sql: str, rows: list[tuple[Any, ...]], batches: Sequence[Batch]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, [list(column) for column in zip(*rows, strict=True)])
        done = {row[0] for row in cursor.fetchall()}
    for batch in batches:
        if batch.run_id not in done:
            raise StaleRun(batch.run_id)


def _json(value: dict[str, Any] | None) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


def _copy_log(batches: Sequence[Batch], now: datetime) -> None:
    at = now.astimezone(UTC).isoformat()
    text = []
    for batch in batches:
        if not batch.rows:
            continue
        content, raw_bytes = store.pack_rows(batch.rows)
        levels = orjson.dumps(store.count_levels(batch.rows)).decode()
        text.append(
            f"{batch.month}\t{batch.run_id}\t{batch.rows[0][0]}\t{batch.rows[-1][0]}\t{batch.attempt}\t{levels}"
            f"\t{at}\t{at}\t{raw_bytes}\t\\\\x{content.hex()}\n"
        )
    _copy(
        "runs_logchunk (month, run_id, first_line, last_line, attempt, levels, first_at, last_at, raw_bytes, content)",
        "".join(text).encode(),
    )


def _copy_items(batches: Sequence[Batch], now: datetime) -> None:
    at = now.astimezone(UTC).isoformat()
    parts: list[bytes] = []
    for batch in batches:
        head = f"{batch.month}\t{batch.run_id}\t".encode()
        middle = f"\t{batch.attempt}\t{batch.dataset_id}\t{at}\t".encode()
        for seq, raw in enumerate(batch.items, batch.base.items + 1):
            parts += head, b"%d" % seq, middle, _escaped(raw), b"\n"
    _copy("runs_item (month, run_id, seq, attempt, dataset_id, created_at, data)", b"".join(parts))


def _escaped(raw: bytes) -> bytes:
    """What COPY reads back as `raw`; a record holds no newline."""
    if b"\\" in raw:
        raw = raw.replace(b"\\", b"\\\\")
    if b"\t" in raw or b"\r" in raw:
        raw = raw.replace(b"\t", b"\\t").replace(b"\r", b"\\r")
    return raw


def _copy(target: str, content: bytes) -> None:
    if not content:
        return
    # Django wraps the errors of execute() but not those of copy().
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(f"COPY {target} FROM STDIN") as copy,
    ):
        copy.write(content)


def _end(batch: Batch, ending: Ending, now: datetime, actor: Actor) -> None:
    ended = finish(run_id=batch.run_id, attempt=batch.attempt, token=batch.token, ending=ending, now=now, actor=actor)
    if ended is None:
        raise StaleRun(batch.run_id)
