"""What the page of a batch shows of a group: `templates/batches/_group.html` gets this. And all its data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from apps.accounts.rights import can
from apps.core.downloads import Download
from apps.core.visible_text import visible_text
from apps.jobs.timing import zone_of
from apps.runs.models import Batch, Run
from apps.runs.reasons import sentence
from apps.runs.selectors import groups
from apps.runs.selectors.batches import visible_batches
from apps.runs.states import State

PAGE_ROWS = 100
LONG_VALUE = 80
CSV, NDJSON = "text/csv; charset=utf-8", "application/x-ndjson"
# The choice of all that did not go well, besides each state by itself.
FAILED = "failed_all"


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A run with what its row has said, or the time it stands for."""

    run: Run
    place: str
    values: list[tuple[str, str]]
    reason: str


@dataclass(frozen=True, slots=True)
class StateChoice:
    """How many runs are in a state, to narrow the rows by it."""

    state: str
    label: str
    n: int
    chosen: bool


def group_context(request: HttpRequest, batch: Batch) -> dict[str, Any]:
    """For a backfill or a table of inputs; drawn again every few seconds while it goes on."""
    progress = groups.progress(batch)
    asked = request.GET.get("state", "")
    states = groups.FAILED if asked == FAILED else (asked,) if asked in State.values else ()
    after = request.GET.get("after", "")
    number = int(after) if after.isascii() and after.isdigit() and len(after) <= 18 else 0
    runs = groups.group_runs(batch, states=states, after=number, limit=PAGE_ROWS + 1)
    more, runs = len(runs) > PAGE_ROWS, runs[:PAGE_ROWS]
    return {
        "progress": progress,
        "canceled": State.CANCELED in progress.states,
        "rows": [_row(batch, run) for run in runs],
        "choices": [
            StateChoice(state, str(label), progress.states[state], asked == state)
            for state, label in State.choices
            if state in progress.states
        ],
        "asked": asked,
        "all_failed": FAILED,
        # Of one kind of failure they are one choice already.
        "offers_all_failed": sum(state in progress.states for state in groups.FAILED) > 1,
        "paged": bool(number),
        "next": runs[-1].pk if more else None,
        "may_export": can(request.user, "export_data", batch),
        "zone": batch.graph.get("zone") or "UTC",
        "watched": [run.pk for run in runs],
    }


def _row(batch: Batch, run: Run) -> GroupRow:
    place = run.batch_key
    if batch.kind == Batch.Kind.BACKFILL and run.scheduled_for is not None:
        wall = run.scheduled_for.astimezone(zone_of(batch.graph.get("zone") or "UTC"))
        place = wall.strftime("%Y-%m-%d %H:%M:%S" if wall.second else "%Y-%m-%d %H:%M")
    values = [(name, _brief(value)) for name, value in groups.row_values(batch, run).items()]
    return GroupRow(run, place, values, sentence(run))


def _brief(value: Any) -> str:
    text = visible_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return text if len(text) <= LONG_VALUE else f"{text[:LONG_VALUE]}…"


def _exported(request: HttpRequest, pk: int) -> Batch:
    batch: Batch = get_object_or_404(visible_batches(request.user, "export_data"), pk=pk)
    return batch


@login_required
@require_safe
def items_csv(request: HttpRequest, pk: int) -> HttpResponseBase:
    """`?excel=1` begins with the mark by which Excel knows UTF-8."""
    batch = _exported(request, pk)
    parts = groups.items_csv(batch, request.user, for_excel=request.GET.get("excel") == "1")
    return Download(parts, filename=f"batch-{batch.pk}-items.csv", content_type=CSV)


@login_required
@require_safe
def items_jsonl(request: HttpRequest, pk: int) -> HttpResponseBase:
    batch = _exported(request, pk)
    return Download(
        groups.items_jsonl(batch, request.user), filename=f"batch-{batch.pk}-items.jsonl", content_type=NDJSON
    )
