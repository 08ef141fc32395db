"""The Data tab and the downloads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.core.downloads import Download
from apps.core.visible_text import visible_text
from apps.runs import selectors
from apps.runs.models import Item, Run
from apps.runs.states import ACTIVE
from apps.runs.views.attempts import attempt_asked
from apps.runs.views.cells import MISSING, Cell, cell_of, pretty

PAGE_ITEMS = 50
MAX_COLUMNS = 30
CSV, NDJSON = "text/csv; charset=utf-8", "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class ItemRow:
    seq: int
    cells: list[Cell]
    raw: str


def number(text: str | None, default: int = 0) -> int:
    """A non-negative number from the address; anything else is the default."""
    return min(int(text), 2**62) if text and text.isascii() and text.isdigit() and len(text) < 20 else default


def page_context(run: Run, *, after: int, raw: bool, attempt: int | None = None) -> dict[str, Any]:
    items = selectors.item_page(run, after=after, limit=PAGE_ITEMS + 1, attempt=attempt)
    more, items = len(items) > PAGE_ITEMS, items[:PAGE_ITEMS]
    columns = _columns(run, items)
    return {
        "raw": raw,
        "after": after,
        "columns": [visible_text(name) for name in columns[:MAX_COLUMNS]],
        "hidden_columns": max(0, len(columns) - MAX_COLUMNS),
        "rows": [_row(item, columns[:MAX_COLUMNS], raw=raw) for item in items],
        "next": items[-1].seq if more else None,
        "previous": max(0, after - PAGE_ITEMS),
    }


def _columns(run: Run, items: list[Item]) -> list[str]:
    """The keys on this page: those of the item schema first, then as they come."""
    seen: dict[str, None] = {}
    for item in items:
        if isinstance(item.data, dict):
            seen.update(dict.fromkeys(item.data))
    return selectors.ordered_columns(run, list(seen))


def _row(item: Item, columns: list[str], *, raw: bool) -> ItemRow:
    data = item.data if isinstance(item.data, dict) else {}
    cells = [] if raw else [cell_of(data.get(name, MISSING)) for name in columns]
    return ItemRow(item.seq, cells, pretty(item.data) if raw else "")


@login_required
@require_safe
@never_cache
def new_items(request: HttpRequest, run_id: int) -> HttpResponse:
    """How many items came since the page was made: "+120 new"."""
    run = get_object_or_404(selectors.visible_runs(request.user, "view_data"), pk=run_id)
    known = number(request.GET.get("known"))
    context = {"run": run, "known": known, "fresh": max(0, run.items - known), "active": run.state in ACTIVE}
    return render(request, "runs/detail/_new_items.html", context)


@login_required
@require_safe
def items_csv(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """`?excel=1` begins with the mark by which Excel knows UTF-8."""
    run = _exported(request, run_id)
    attempt = attempt_asked(request)
    parts = selectors.items_csv(run, for_excel=request.GET.get("excel") == "1", attempt=attempt)
    return Download(parts, filename=f"{selectors.file_stem(run, attempt)}-items.csv", content_type=CSV)


@login_required
@require_safe
def items_jsonl(request: HttpRequest, run_id: int) -> HttpResponseBase:
    run = _exported(request, run_id)
    attempt = attempt_asked(request)
    parts = selectors.items_jsonl(run, attempt=attempt)
    return Download(parts, filename=f"{selectors.file_stem(run, attempt)}-items.jsonl", content_type=NDJSON)


def _exported(request: HttpRequest, run_id: int) -> Run:
    run: Run = get_object_or_404(selectors.visible_runs_for_page(request.user, "export_data"), pk=run_id)
    return run
