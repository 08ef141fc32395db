"""The queued runs a node could start, in the order they should start.

Runs of one project, priority and shape (what they ask of nodes and pools) form a line, the oldest first. A claim looks
at the front of each line and steps over a line that is held up as a whole; so it costs what the number of different
lines costs, however long they are.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum, auto
from typing import Any, NamedTuple

from django.db import connection

from apps.runs.models import Node
from apps.runs.selectors.occupancy import HOLDS_JOB, RESERVE_AFTER, Gate, Lack, Occupancy, could_hold, literals, urgency

# So many runs of a line are looked at one by one, in case their jobs are busy, before it is split by jobs.
_FRONT = 200
_SPARE = 8


class Candidate(NamedTuple):
    run_id: int
    # Seconds it has waited: a time of day takes longer to read than all the rest of a row.
    age: float
    priority: int
    project_id: int
    spider_id: int
    job_id: int | None
    job_limit: int | None
    pools: list[int]
    selector_text: str
    memory_bytes: int
    cpus: float
    shape: int
    # False: the runs up to here wait for their jobs, and there are more.
    open: bool
    # Those in front of it in its line wait for their jobs: it is the first of its own.
    of_job: bool = False

    @property
    def selector(self) -> Mapping[str, str]:
        found: dict[str, str] = {} if self.selector_text == "{}" else json.loads(self.selector_text)
        return found


_SHAPE = "claw_run_shape(spider_id, memory_bytes, cpus, pools, selector)"
_OWN = "priority, project_id, spider_id, job_id, job_limit, pools, selector, memory_bytes, cpus"
_COLUMNS = f"id, queued_at, {_OWN}, {_SHAPE} AS shape"
_KEPT = f"id, queued_at, {_OWN}, shape"
_READ = f"id, extract(epoch FROM %(now)s - queued_at)::float8, {_OWN}, shape"
# One row for each run of a job that is under way: its limit n is reached when the n-th row is there.
_BUSY = f"""under_way AS MATERIALIZED (
    SELECT job_id FROM runs_run WHERE job_id IS NOT NULL AND NOT apart AND state IN ({literals(HOLDS_JOB)})
), busy AS MATERIALIZED (
    SELECT job_id * 65536 + row_number() OVER (PARTITION BY job_id) AS reached FROM under_way
)"""  # noqa: S608
_JOB_OPEN = (
    "(job_limit IS NULL OR job_id IS NULL OR (job_id * 65536 + job_limit) NOT IN (SELECT reached FROM busy)) AS open"
)
# What a whole line may wait for. One that does not fit beside the others passes when it has waited so long that the
# node must be kept free for it.
_FITS = """
    project_id <> ALL(%(projects)s) AND spider_id <> ALL(%(spiders)s) AND NOT pools && %(pools)s::bigint[]
    AND selector <@ %(labels)s::jsonb
    AND memory_bytes <= CASE WHEN queued_at < %(reserve)s THEN %(most_memory)s ELSE %(free_memory)s END
    AND cpus <= CASE WHEN queued_at < %(reserve)s THEN %(most_cpus)s ELSE %(free_cpus)s END
"""
_SAME_LINE = f"state = 'queued' AND project_id = f.project_id AND priority = f.priority AND {_SHAPE} = f.shape"
_LINES = f"""
WITH RECURSIVE {_BUSY}, head AS (
    (SELECT {_COLUMNS} FROM runs_run WHERE state = 'queued'
     ORDER BY project_id, priority, {_SHAPE}, queued_at, id LIMIT 1)
    UNION ALL
    SELECT n.* FROM head h CROSS JOIN LATERAL (
        SELECT {_COLUMNS} FROM runs_run
        WHERE state = 'queued' AND (project_id, priority, {_SHAPE}) > (h.project_id, h.priority, h.shape)
        ORDER BY project_id, priority, {_SHAPE}, queued_at, id LIMIT 1
    ) n
), front AS MATERIALIZED (
    SELECT {_KEPT}, {_JOB_OPEN} FROM head WHERE {_FITS}
), near AS (
    SELECT n.* FROM front f CROSS JOIN LATERAL (
        SELECT {_KEPT}, open FROM (
            SELECT {_COLUMNS}, {_JOB_OPEN}, row_number() OVER (ORDER BY queued_at, id) AS place FROM runs_run
            WHERE {_SAME_LINE} ORDER BY queued_at, id LIMIT {_FRONT}
        ) one WHERE open OR place = {_FRONT} ORDER BY queued_at, id LIMIT 1
    ) n WHERE NOT f.open
)
SELECT {_READ}, open FROM front WHERE open UNION ALL SELECT {_READ}, open FROM near
"""  # noqa: S608
# Runs of a job may have been asked for under different limits.
_JOB = "coalesce(job_id, 0) * 65536 + coalesce(job_limit, 0)"
_JOBS = f"""
WITH {_BUSY}
SELECT n.* FROM unnest(%(projects)s::bigint[], %(priorities)s::int[], %(shapes)s::bigint[])
    AS f (project_id, priority, shape)
CROSS JOIN LATERAL (
    WITH RECURSIVE head AS (
        (SELECT {_COLUMNS}, {_JOB} AS job FROM runs_run WHERE {_SAME_LINE} ORDER BY {_JOB}, queued_at, id LIMIT 1)
        UNION ALL
        SELECT n.* FROM head h CROSS JOIN LATERAL (
            SELECT {_COLUMNS}, {_JOB} AS job FROM runs_run WHERE {_SAME_LINE} AND {_JOB} > h.job
            ORDER BY {_JOB}, queued_at, id LIMIT 1
        ) n
    )
    SELECT {_READ}, true, true FROM (SELECT head.*, {_JOB_OPEN} FROM head) one
    WHERE open ORDER BY queued_at, id LIMIT %(limit)s
) n
"""  # noqa: S608
_OF_LINE = f"state = 'queued' AND project_id = %(project)s AND priority = %(priority)s AND {_SHAPE} = %(shape)s"
_OF_JOB = f"{_OF_LINE} AND {_JOB} = %(job)s"
_NEXT = f"""
WITH {_BUSY}
SELECT {_READ}, open FROM (
    SELECT {_COLUMNS}, {_JOB_OPEN}, row_number() OVER (ORDER BY queued_at, id) AS place FROM runs_run
    WHERE {{line}} AND (queued_at, id) > ((SELECT queued_at FROM runs_run WHERE id = %(id)s), %(id)s)
    ORDER BY queued_at, id LIMIT {_FRONT}
) one WHERE open OR place = {_FRONT} ORDER BY queued_at, id LIMIT %(limit)s
"""  # noqa: S608


def _read(query: str, values: Mapping[str, Any]) -> list[Candidate]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return [Candidate(*row) for row in cursor.fetchall()]


def _lines(node: Node, occupancy: Occupancy, now: datetime, limit: int) -> list[_Line]:
    found = _read(_LINES, _limits(node, occupancy, now))
    lines = [_Line(row) for row in found if row.open]
    held_up = [row for row in found if not row.open]
    return lines + _lines_of_jobs(held_up, now, limit) if held_up else lines


def _lines_of_jobs(held_up: Sequence[Candidate], now: datetime, limit: int) -> list[_Line]:
    """In place of these lines one for each job of theirs that is not busy."""
    values = {
        "projects": [row.project_id for row in held_up],
        "priorities": [row.priority for row in held_up],
        "shapes": [row.shape for row in held_up],
        "now": now,
        "limit": limit,
    }
    return [_Line(row) for row in _read(_JOBS, values)]


class _Line:
    """`ahead` are the runs known to come next, `at` is the first of them, or the last one seen."""

    def __init__(self, first: Candidate) -> None:
        self.at = first
        self.ahead = [first]

    def step(self) -> None:
        del self.ahead[0]
        if self.ahead:
            self.at = self.ahead[0]

    def read_on(self, now: datetime, limit: int) -> list[_Line]:
        """The line with its next runs; or the lines of its jobs, when so many in front wait for theirs."""
        at = self.at
        values = {
            "project": at.project_id,
            "priority": at.priority,
            "shape": at.shape,
            "job": (at.job_id or 0) * 65536 + (at.job_limit or 0),
            "now": now,
            "id": at.run_id,
            "limit": limit,
        }
        found = _read(_NEXT.format(line=_OF_JOB if at.of_job else _OF_LINE), values)
        self.ahead = [row._replace(of_job=at.of_job) for row in found if row.open]
        if self.ahead:
            self.at = self.ahead[0]
            return [self]
        return _lines_of_jobs([at], now, limit) if found and not at.of_job else []


def in_order(*, node: Node, occupancy: Occupancy, now: datetime, wanted: int) -> Iterator[Candidate]:
    """The most urgent first; among those as urgent, of the project with the fewest runs placed, then the oldest.

    `occupancy` is read again at each step: the caller adds to it what it takes.
    """

    def key(at: Candidate) -> tuple[int, int, float, int]:
        return urgency(at.priority, at.age), occupancy.used[Gate.PROJECT][at.project_id], -at.age, at.run_id

    limit = wanted + _SPARE
    heap = [(key(line.at), number, line) for number, line in enumerate(_lines(node, occupancy, now, limit))]
    heapq.heapify(heap)
    number = len(heap)
    while heap:
        seen, _number, line = heapq.heappop(heap)
        rest = [line]
        if key(line.at) > seen:
            pass  # its project has got a place since: it may be another's turn
        elif not line.ahead:
            rest = line.read_on(now, limit)
        else:
            run = line.ahead[0]
            verdict = _judge(run, node, occupancy)
            if verdict is _Verdict.KEEP_FREE:
                return
            if verdict is _Verdict.LINE_WAITS:
                continue
            line.step()
            if verdict is _Verdict.START:
                yield run
        for line in rest:
            number += 1
            heapq.heappush(heap, (key(line.at), number, line))


class _Verdict(Enum):
    START = auto()
    # Its job is busy; another's run may stand right behind it.
    WAITS = auto()
    LINE_WAITS = auto()
    KEEP_FREE = auto()


def _judge(run: Candidate, node: Node, occupancy: Occupancy) -> _Verdict:
    full = next(occupancy.full_gates(run), None)
    if full is not None:
        return _Verdict.WAITS if full.gate is Gate.JOB else _Verdict.LINE_WAITS
    lack = occupancy.lack(run, node)
    if lack is None:
        return _Verdict.START
    # Less urgent ones must not take again and again what a large run waits for.
    waited = run.age > RESERVE_AFTER.total_seconds() and could_hold(node, run)
    if lack is Lack.PLACES or (waited and lack is not Lack.LABELS):
        return _Verdict.KEEP_FREE
    return _Verdict.LINE_WAITS


def _limits(node: Node, occupancy: Occupancy, now: datetime) -> dict[str, Any]:
    return {
        "projects": occupancy.full(Gate.PROJECT),
        "spiders": occupancy.full(Gate.SPIDER),
        "pools": occupancy.full(Gate.POOL),
        "labels": json.dumps(node.labels),
        "now": now,
        "reserve": now - RESERVE_AFTER,
        "most_memory": node.memory_bytes,
        "free_memory": occupancy.free_memory(node),
        "most_cpus": node.cpus,
        "free_cpus": occupancy.free_cpus(node),
    }
