"""Queued runs for tests of placement, and claims of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import connection

from apps.runs import queue
from apps.runs.models import Node, Run
from apps.runs.states import State
from tests.factories import RunFactory

MIB = 1024 * 1024
HOME = Path("/nowhere/runs")


def claim(node: Node, now: datetime, limit: int = 10, worker: str = "w") -> list[int]:
    claimed = queue.claim(node=node, worker=worker, runs_home=HOME, now=now, limit=limit)
    return [run.run_id for run in claimed]


def queued(now: datetime, minutes: float = 0, **given: Any) -> Run:
    return RunFactory(state=State.QUEUED, queued_at=now - timedelta(minutes=minutes), **given)


def many(like: Run, count: int, columns: dict[str, str] | None = None) -> None:
    """Copies of a run, each a millisecond younger; `columns` are expressions of the number n."""
    names = [field.column for field in Run._meta.concrete_fields if field.column not in ("id", "request_id")]
    given = {"queued_at": "queued_at + n * interval '1 millisecond'", **(columns or {})}
    values = ", ".join(given.get(name, name) for name in names)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO runs_run ({', '.join(names)}, request_id) SELECT {values}, gen_random_uuid()"  # noqa: S608
            " FROM runs_run, generate_series(1, %s) n WHERE runs_run.id = %s",
            [count, like.pk],
        )
