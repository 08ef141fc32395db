"""Items of a run, by key set: the partition is named by the run's month, so one index answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from apps.core.csv_cells import csv_lines
from apps.core.schema_forms import names_in_order
from apps.runs.models import Attempt, Item, Run

MAX_COLUMNS = 1000
_BATCH = 500

_KEYS = """
SELECT key FROM (
    SELECT key, min(seq) AS first FROM runs_item, jsonb_object_keys(
        CASE WHEN jsonb_typeof(data) = 'object' THEN data ELSE '{}'::jsonb END
    ) AS key WHERE month = %(month)s AND run_id = %(run)s AND CASE
        WHEN %(attempt)s::integer IS NOT NULL THEN attempt = %(attempt)s
        ELSE attempt NOT IN (SELECT number FROM runs_attempt WHERE run_id = %(run)s AND items_discarded)
    END GROUP BY key
) AS keys ORDER BY first, key COLLATE "C" LIMIT %(most)s
"""


class ItemText(NamedTuple):
    """An item as the JSON text PostgreSQL keeps: numbers of any size come through unharmed."""

    seq: int
    text: str


def _own(run: Run, attempt: int | None) -> QuerySet[Item]:
    """Without those that later attempts have replaced, unless their attempt is named."""
    items = Item.objects.filter(month=run.month, run_id=run.pk)
    if attempt is not None:
        return items.filter(attempt=attempt)
    replaced = Attempt.objects.filter(run_id=run.pk, items_discarded=True)
    return items.exclude(attempt__in=replaced.values("number"))


def item_page(run: Run, *, after: int = 0, limit: int = 50, attempt: int | None = None) -> list[Item]:
    """The next items behind number `after`, in order."""
    return list(_own(run, attempt).filter(seq__gt=after).order_by("seq")[:limit])


def all_items(run: Run, *, attempt: int | None = None) -> Iterator[list[ItemText]]:
    """Every item in batches, one short query each: nothing stays open while a slow reader reads."""
    after = 0
    while True:
        own = _own(run, attempt).filter(seq__gt=after).order_by("seq")
        batch = [
            ItemText(*row) for row in own.annotate(text=Cast("data", TextField())).values_list("seq", "text")[:_BATCH]
        ]
        if not batch:
            return
        yield batch
        after = batch[-1].seq


def item_columns(run: Run, *, attempt: int | None = None) -> list[str]:
    """Keys of the run's items: those of the item schema first, then in order of appearance; bounded."""
    with connection.cursor() as cursor:
        values: dict[str, Any] = {"month": run.month, "run": run.pk, "attempt": attempt, "most": MAX_COLUMNS}
        cursor.execute(_KEYS, values)
        seen = [key for (key,) in cursor.fetchall()]
    return ordered_columns(run, seen)


def ordered_columns(run: Run, keys: list[str]) -> list[str]:
    schema = run.version.item_schema or {}
    present = set(keys)
    first = [key for key in names_in_order(schema) if key in present] if isinstance(schema, dict) else []
    known = set(first)
    return first + [key for key in keys if key not in known]


def items_csv(run: Run, *, for_excel: bool = False, attempt: int | None = None) -> Iterator[bytes]:
    """All items as CSV that is safe to open in a spreadsheet."""
    batches = all_items(run, attempt=attempt)
    rows = (json.loads(item.text, parse_float=Decimal) for batch in batches for item in batch)
    objects = (row if isinstance(row, dict) else {} for row in rows)
    return csv_lines(item_columns(run, attempt=attempt), objects, for_excel=for_excel)


def items_jsonl(run: Run, *, attempt: int | None = None) -> Iterator[bytes]:
    """All items, one JSON object a line, as PostgreSQL keeps them."""
    for batch in all_items(run, attempt=attempt):
        for item in batch:
            yield f"{item.text}\n".encode()
