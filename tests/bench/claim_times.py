"""Prints, as JSON, the milliseconds of claims of one run from queues of several lengths, and of bare ones beside them.

In a database of its own on the panel's server, so that nothing else takes from the queue.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "clawpanel.settings")

import django

django.setup()

from django.db import connection  # noqa: E402 (after set-up)

from apps.runs import queue  # noqa: E402
from apps.runs.models import Node, Pool, Run  # noqa: E402
from apps.runs.states import State  # noqa: E402
from tests.factories import JobFactory, NodeFactory, ProjectFactory, RunFactory, SpiderFactory  # noqa: E402

LENGTHS = (1_000, 10_000, 50_000)
CLAIMS = 200
MIB = 1024 * 1024
# What a queue in SQL is at the least: no limits, no memory, no order but age.
BARE = """
UPDATE runs_run SET state = 'starting', token = token + 1, lease_until = now() + interval '20 seconds'
WHERE id = (SELECT id FROM runs_run WHERE state = 'queued' ORDER BY priority, queued_at, id
            LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
"""
COLUMNS = [field.column for field in Run._meta.concrete_fields if field.column not in ("id", "request_id")]


def queued_jobs() -> list[Run]:
    """One run each of 80 jobs of 40 spiders in 20 projects; every second job allows one run at once."""
    projects = [ProjectFactory() for _ in range(20)]
    spiders = [SpiderFactory(project=project) for project in projects for _ in range(2)]
    jobs = [JobFactory(spider=spider) for spider in spiders for _ in range(2)]
    return [RunFactory(job=job, job_limit=1 if job.pk % 2 else None, memory_bytes=64 * MIB) for job in jobs]


def fill(like: list[Run], count: int, **columns: str) -> None:
    """Copies of these runs in all priorities."""
    given = {"priority": "1 + n % 9", "queued_at": "queued_at - n * interval '1 millisecond'", **columns}
    values = ", ".join(given.get(name, name) for name in COLUMNS)
    names = ", ".join(COLUMNS)
    ids = ", ".join(str(run.pk) for run in like)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO runs_run ({names}, request_id) SELECT {values}, gen_random_uuid() FROM runs_run,"  # noqa: S608
            f" generate_series(1, {count // len(like)}) n WHERE runs_run.id IN ({ids})"
        )
        cursor.execute("ANALYZE runs_run")


def claim(node: Node) -> None:
    taken = queue.claim(node=node, worker="bench", runs_home=Path("/bench"), now=datetime.now(UTC), limit=1)
    if len(taken) != 1:
        raise SystemExit(f"{len(taken)} runs were taken")


def bare(_node: Node) -> None:
    with connection.cursor() as cursor:
        cursor.execute(BARE)


def times(what: Callable[[Node], None], node: Node) -> list[float]:
    """Some runs stay placed, as on a busy node; what is taken is over at once."""
    found = []
    for number in range(CLAIMS + 10):
        started = time.perf_counter()
        what(node)
        if number >= 10:
            found.append((time.perf_counter() - started) * 1000)
        Run.objects.filter(state=State.STARTING).update(state=State.SUCCEEDED)
    return found


def main() -> None:
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        # Nobody beats its heart here.
        alive = datetime.now(UTC) + timedelta(days=1)
        node = NodeFactory(slots=1000, memory_bytes=1 << 50, cpus=500.0, heartbeat_at=alive)
        RunFactory.create_batch(20, state=State.RUNNING, node=node)
        jobs = queued_jobs()
        measured: dict[str, list[float]] = {}
        length = 0
        for wanted in LENGTHS:
            fill(jobs, wanted - length)
            length = wanted
            measured[f"claim {wanted}"] = times(claim, node)
            measured[f"bare {wanted}"] = times(bare, node)
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM runs_run WHERE state = 'queued'")
        measured["claim blocked"] = blocked(node)
        print(json.dumps(measured))
    finally:
        connection.creation.destroy_test_db(connection.settings_dict["NAME"], verbosity=0)


def blocked(node: Node) -> list[float]:
    """5 000 runs of a full pool and 5 000 of a busy job stand in front of those that may start."""
    full = RunFactory(state=State.RUNNING, node=node, pools=[Pool.objects.create(name="full", limit=1).pk])
    busy = RunFactory(state=State.RUNNING, node=node, job_limit=1)
    for held in (full, busy):
        fill([held], 5000, state=f"'{State.QUEUED}'", node_id="NULL", queued_at="queued_at - interval '9 minutes'")
    fill([RunFactory(job=JobFactory(spider=busy.spider))], CLAIMS + 50)
    return times(claim, node)


if __name__ == "__main__":
    main()
