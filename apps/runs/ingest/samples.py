"""Use of resources over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One run's use at an instant, as its agent saw it."""

    run_id: int
    token: int
    attempt: int
    cpu_percent: float
    memory_bytes: int
    memory_limit_bytes: int
    pids: int


_PEAKS = """
WITH v AS (SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS v(id, token, memory)),
locked AS MATERIALIZED (
    SELECT r.id FROM runs_run r JOIN v ON v.id = r.id
    WHERE r.memory_peak_bytes < v.memory ORDER BY r.id FOR NO KEY UPDATE OF r
)
UPDATE runs_run r SET memory_peak_bytes = v.memory FROM v JOIN locked USING (id)
WHERE r.id = v.id AND r.token = v.token AND r.memory_peak_bytes < v.memory
"""
_INSERT = """
INSERT INTO runs_resourcesample
    (run_id, at, attempt, cpu_percent, memory_bytes, memory_limit_bytes, pids, lines, items)
SELECT r.id, %s, v.attempt, v.cpu, v.memory, v.memory_limit, v.pids, r.lines, r.items
FROM unnest(%s::bigint[], %s::bigint[], %s::int[], %s::float[], %s::bigint[], %s::bigint[], %s::int[])
    AS v(id, token, attempt, cpu, memory, memory_limit, pids)
JOIN runs_run r ON r.id = v.id AND r.token = v.token
"""


@transaction.atomic
def store_samples(rows: Sequence[SampleRow], *, now: datetime) -> None:
    """Write the samples of all runs of a node at once."""
    if not rows:
        return
    ids = [row.run_id for row in rows]
    tokens = [row.token for row in rows]
    memory = [row.memory_bytes for row in rows]
    limits = [row.memory_limit_bytes for row in rows]
    with connection.cursor() as cursor:
        cursor.execute(_PEAKS, [ids, tokens, memory])
        attempts = [row.attempt for row in rows]
        cpu = [row.cpu_percent for row in rows]
        cursor.execute(_INSERT, [now, ids, tokens, attempts, cpu, memory, limits, [row.pids for row in rows]])
