"""What a panel left behind, read from its database as plain values: what the checkers judge."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.rows import class_row

from apps.jobs.timing import rule_of
from apps.runs.store import unpack_rows
from tests.chaos.slots import Fired, Made, Timed

NUMBERED = re.compile(r"line (\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    id: int
    state: str
    reason: str = ""
    attempt: int = 1
    node: str | None = None
    memory: int = 0
    cpus: float = 1.0
    pools: list[int] = field(default_factory=list)
    job: int | None = None
    job_limit: int | None = None
    spider: int = 0
    project: int = 0
    lines: int = 0
    items: int = 0
    discarded: int = 0
    damaged: bool = False
    queued_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    stop_cause: str = ""
    exit_code: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    attempts_allowed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    id: int
    run: int
    at: datetime
    kind: str = "state"
    frm: str = ""
    to: str = ""
    attempt: int = 0
    reason: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    run: int
    number: int
    claimed_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int | None = None
    infrastructure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    name: str
    slots: int
    memory: int
    cpus: float


@dataclass(frozen=True, slots=True)
class Line:
    """`number` is that of the panel, `text` what was printed."""

    run: int
    number: int
    attempt: int
    text: str


@dataclass(frozen=True, slots=True)
class Item:
    run: int
    seq: int
    attempt: int
    n: int


@dataclass(frozen=True, slots=True)
class ContainerEvent:
    """From the engine's own stream of events, not from the panel. `at` is the engine's clock."""

    at: datetime
    what: str
    container: str
    run: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Window:
    """While a fault was at work, and until everything answered again."""

    start: datetime
    end: datetime
    fault: str


NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(kw_only=True)
class Evidence:
    runs: dict[int, RunRow] = field(default_factory=dict)
    schedules: list[Timed] = field(default_factory=list)
    ledger: list[Fired] = field(default_factory=list)
    made: list[Made] = field(default_factory=list)
    # Each time in since < t <= until was the clock's to decide.
    since: datetime = NEVER
    until: datetime = NEVER
    events: list[Event] = field(default_factory=list)
    attempts: list[AttemptRow] = field(default_factory=list)
    nodes: dict[str, NodeRow] = field(default_factory=dict)
    pools: dict[int, int] = field(default_factory=dict)
    spiders: dict[int, int | None] = field(default_factory=dict)
    projects: dict[int, int | None] = field(default_factory=dict)
    most_running: int | None = None
    lines: list[Line] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    containers: list[ContainerEvent] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    # Runs whose container somebody removed by hand, and runs that wrote to a full disk.
    hurt: set[int] = field(default_factory=set)
    # Run ids that the API answered with a 2xx.
    promised: set[int] = field(default_factory=set)
    leftovers: list[str] = field(default_factory=list)


_RUNS = """
SELECT r.id, r.state, r.reason, r.attempt, n.name AS node, r.memory_bytes AS memory, r.cpus, r.pools, r.job_id AS job,
       r.job_limit, r.spider_id AS spider, r.project_id AS project, r.lines, r.items, r.items_discarded AS discarded,
       r.log_damaged AS damaged, r.queued_at, r.started_at, r.finished_at, r.stop_cause, r.exit_code,
       r.spec -> 'parameters' AS parameters, coalesce((r.spec -> 'retry' ->> 'attempts')::int, 1) AS attempts_allowed
FROM runs_run r LEFT JOIN runs_node n ON n.id = r.node_id ORDER BY r.id
"""
_EVENTS = """
SELECT id, run_id AS run, at, kind, from_state AS frm, to_state AS to, attempt, reason, detail
FROM runs_runevent ORDER BY id
"""
_ATTEMPTS = """
SELECT run_id AS run, number, claimed_at, started_at, finished_at, exit_code, infrastructure
FROM runs_attempt ORDER BY run_id, number
"""
_NODES = "SELECT name, slots, memory_bytes AS memory, cpus FROM runs_node"


_SCHEDULES = "SELECT id, type, every_seconds, anchor_at FROM jobs_schedule ORDER BY id"
_LEDGER = """
SELECT schedule_id, scheduled_for, outcome, reason, run_id, decided_at, until, times FROM jobs_firing
WHERE schedule_id IS NOT NULL ORDER BY id
"""
_MADE = "SELECT id, schedule_id, scheduled_for FROM runs_run WHERE schedule_id IS NOT NULL ORDER BY id"


def collect(url: str) -> Evidence:
    """Everything the database knows; what it does not know is added by whoever watched."""
    found = Evidence()
    with psycopg.connect(url) as connection:
        with connection.cursor(row_factory=class_row(RunRow)) as cursor:
            found.runs = {row.id: row for row in cursor.execute(_RUNS)}
        with connection.cursor(row_factory=class_row(Event)) as cursor:
            found.events = cursor.execute(_EVENTS).fetchall()
        with connection.cursor(row_factory=class_row(AttemptRow)) as cursor:
            found.attempts = cursor.execute(_ATTEMPTS).fetchall()
        with connection.cursor(row_factory=class_row(NodeRow)) as cursor:
            found.nodes = {row.name: row for row in cursor.execute(_NODES)}
        found.pools = dict(connection.execute('SELECT id, "limit" FROM runs_pool').fetchall())
        found.spiders = dict(connection.execute("SELECT id, max_running FROM spiders_spider").fetchall())
        found.projects = dict(connection.execute("SELECT id, max_running FROM spiders_project").fetchall())
        most = connection.execute("SELECT max_running FROM runs_placement").fetchone()
        found.most_running = most[0] if most else None
        found.schedules = [
            Timed(pk, rule_of(type=type_, every_seconds=every, anchor_at=anchor))
            for pk, type_, every, anchor in connection.execute(_SCHEDULES)
        ]
        found.ledger = [Fired(*row) for row in connection.execute(_LEDGER)]
        found.made = [Made(*row) for row in connection.execute(_MADE)]
        found.lines = _lines(connection)
        found.items = [
            Item(run, seq, attempt, data["n"])
            for run, seq, attempt, data in connection.execute(
                "SELECT run_id, seq, attempt, data FROM runs_item WHERE data ? 'n' ORDER BY run_id, seq"
            )
        ]
    return found


def _lines(connection: psycopg.Connection[Any]) -> list[Line]:
    chunks = connection.execute("SELECT run_id, attempt, content FROM runs_logchunk ORDER BY run_id, first_line")
    return [
        Line(run, number, attempt, text)
        for run, attempt, content in chunks
        for number, _at, _level, text in unpack_rows(content)
    ]
