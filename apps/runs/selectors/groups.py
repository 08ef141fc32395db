"""Groups of runs of one job: how far they are, their rows, and all their items as one table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.db.models import Count, QuerySet

from apps.accounts.models import User
from apps.accounts.rights import allowed
from apps.core.csv_cells import csv_lines
from apps.runs.models import Batch, Run
from apps.runs.selectors.items import MAX_COLUMNS, all_items, ordered_columns
from apps.runs.states import TERMINAL, State

FAILED = (State.FAILED, State.TIMED_OUT, State.LOST)

_KEYS = """
SELECT key FROM (
    SELECT key, min(ARRAY[item.run_id, item.seq]) AS first
    FROM runs_item AS item, jsonb_object_keys(
        CASE WHEN jsonb_typeof(item.data) = 'object' THEN item.data ELSE '{}'::jsonb END
    ) AS key
    WHERE item.month = ANY(%(months)s) AND item.run_id = ANY(%(runs)s)
    AND NOT EXISTS (
        SELECT FROM runs_attempt AS gone
        WHERE gone.run_id = item.run_id AND gone.number = item.attempt AND gone.items_discarded
    )
    GROUP BY key
) AS keys ORDER BY first, key COLLATE "C" LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the bar: so many runs in that state, behind `start` others."""

    state: str
    start: int
    n: int


# How the bar is filled, from the left; what waits is what it is empty of.
_BAR = (
    *(State.SUCCEEDED, State.FAILED, State.TIMED_OUT, State.LOST, State.CANCELED, State.SKIPPED),
    *(State.STOPPING, State.RUNNING, State.PAUSED, State.STARTING),
)


@dataclass(frozen=True, slots=True)
class Progress:
    """How many runs are in which state."""

    states: dict[str, int] = field(default_factory=dict)

    def _sum(self, states: Iterable[str]) -> int:
        return sum(self.states.get(state, 0) for state in states)

    @property
    def parts(self) -> list[Part]:
        found: list[Part] = []
        start = 0
        for state in _BAR:
            if n := self.states.get(state, 0):
                found.append(Part(state, start, n))
                start += n
        return found

    @property
    def total(self) -> int:
        return sum(self.states.values())

    @property
    def over(self) -> int:
        return self._sum(TERMINAL)

    @property
    def succeeded(self) -> int:
        return self._sum((State.SUCCEEDED,))

    @property
    def failed(self) -> int:
        return self._sum(FAILED)

    @property
    def canceled(self) -> int:
        return self._sum((State.CANCELED, State.SKIPPED))

    @property
    def waiting(self) -> int:
        return self._sum((State.WAITING,))

    @property
    def under_way(self) -> int:
        return self.total - self.over - self.waiting


def progress(batch: Batch) -> Progress:
    counted = Run.objects.filter(batch=batch).order_by().values_list("state").annotate(n=Count("pk"))
    return Progress(dict(counted))


def progress_of(batches: Sequence[Batch]) -> dict[int, Progress]:
    """Of many batches, in one statement."""
    counted = Run.objects.filter(batch__in=batches).order_by().values_list("batch_id", "state").annotate(n=Count("pk"))
    states: dict[int, dict[str, int]] = {batch.pk: {} for batch in batches}
    for batch_id, state, n in counted:
        states[batch_id][state] = n
    return {batch_id: Progress(found) for batch_id, found in states.items()}


@dataclass(frozen=True, slots=True)
class GroupGlance:
    """A group as a list shows it."""

    batch: Batch
    progress: Progress


def groups_of(job_id: int, kind: str) -> QuerySet[Batch]:
    """The groups of a job the caller was allowed to see, unordered."""
    return Batch.objects.filter(job_id=job_id, kind=kind).select_related("schedule", "requested_by")


def glances(job_id: int, kind: str, *, schedule_id: int | None = None, most: int = 10) -> list[GroupGlance]:
    """Newest first."""
    found = groups_of(job_id, kind)
    if schedule_id is not None:
        found = found.filter(schedule_id=schedule_id)
    batches = list(found.order_by("-pk")[:most])
    counted = progress_of(batches)
    return [GroupGlance(batch, counted[batch.pk]) for batch in batches]


def group_runs(batch: Batch, *, states: Sequence[str] = (), after: int = 0, limit: int = 100) -> list[Run]:
    """The runs in the order of their rows, those behind run `after`."""
    runs = Run.objects.filter(batch=batch, pk__gt=after).order_by("pk")
    if states:
        runs = runs.filter(state__in=states)
    return list(runs.select_related("spider", "project", "node", "requested_by")[:limit])


def row_values(batch: Batch, run: Run) -> dict[str, Any]:
    """What the row has said: parameters as the run got them. Of a backfill: nothing, its time is the run's."""
    parameters = run.spec.get("parameters") or {}
    return {name: parameters.get(name) for name in batch.graph.get("columns") or ()}


def runs_for_times(*, schedule_id: int, first: datetime, last: datetime) -> dict[datetime, Run]:
    """By time: the newest run that the schedule or a backfill of it has made for it. Skipped ones never ran."""
    asked = Run.objects.filter(scheduled_for__range=(first, last)).exclude(state=State.SKIPPED)
    fired = asked.filter(schedule_id=schedule_id)
    filled = asked.filter(batch__in=Batch.objects.filter(schedule_id=schedule_id, kind=Batch.Kind.BACKFILL))
    newest: dict[datetime, Run] = {}
    for run in sorted((*fired.defer("spec", "stats"), *filled.defer("spec", "stats")), key=lambda run: run.pk):
        if run.scheduled_for is not None:
            newest[run.scheduled_for] = run
    return newest


# -- all items of a group -----------------------------------------------------------------------------------------


def _exported(batch: Batch, user: User | AnonymousUser) -> list[Run]:
    """Runs with items whose data this person may take away, in the order of their rows."""
    runs = allowed(user, "export_data", Run).filter(batch=batch, items__gt=0)
    return list(runs.select_related("version").order_by("pk"))


def _fixed(batch: Batch, run: Run) -> dict[str, Any]:
    """What stands before the item in each line."""
    row: dict[str, Any] = {"run": run.pk}
    if batch.kind == Batch.Kind.BACKFILL:
        row["scheduled_for"] = run.scheduled_for.isoformat() if run.scheduled_for else None
    elif batch.kind == Batch.Kind.INPUTS:
        row["row"] = int(run.batch_key) if run.batch_key.isdecimal() else run.batch_key
    else:
        row["job"] = run.job_name
    return row


def items_csv(batch: Batch, user: User | AnonymousUser, *, for_excel: bool = False) -> Iterator[bytes]:
    """All items of all runs as one table: the run, the values of its row as `input.<name>`, then the item."""
    runs = _exported(batch, user)
    before = list(_fixed(batch, runs[0])) if runs else ["run"]
    inputs = [f"input.{name}" for name in batch.graph.get("columns") or ()]
    keys = _keys(runs)
    taken = {*before, *inputs}
    named = {key: f"item.{key}" if key in taken else key for key in keys}
    columns = [*before, *inputs, *named.values()]
    return csv_lines(columns, _csv_rows(batch, runs, named), for_excel=for_excel)


def _csv_rows(batch: Batch, runs: list[Run], named: dict[str, str]) -> Iterator[dict[str, Any]]:
    for run in runs:
        values = {f"input.{name}": value for name, value in row_values(batch, run).items()}
        before = {**_fixed(batch, run), **values}
        for items in all_items(run):
            for item in items:
                data = json.loads(item.text, parse_float=Decimal)
                fields = data if isinstance(data, dict) else {}
                yield {**before, **{named[key]: value for key, value in fields.items() if key in named}}


def items_jsonl(batch: Batch, user: User | AnonymousUser) -> Iterator[bytes]:
    """The same, one object a line: {"run": …, "row": …, "input": {…}, "item": {…}}."""
    for run in _exported(batch, user):
        before = _fixed(batch, run)
        if values := row_values(batch, run):
            before["input"] = values
        head = json.dumps(before, ensure_ascii=False)[:-1]
        for items in all_items(run):
            for item in items:
                yield f'{head}, "item": {item.text}}}\n'.encode()


def _keys(runs: list[Run]) -> list[str]:
    if not runs:
        return []
    values: dict[str, Any] = {
        "months": sorted({run.month for run in runs}),
        "runs": [run.pk for run in runs],
        "most": MAX_COLUMNS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_KEYS, values)
        seen = [key for (key,) in cursor.fetchall()]
    return ordered_columns(runs[0], seen)
