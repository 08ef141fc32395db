"""What the log viewer fetches: ranges of lines, the index of blocks, the whole as a file."""

from __future__ import annotations

from typing import Any

import orjson
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.core.downloads import Download
from apps.runs import selectors
from apps.runs.states import Level
from apps.runs.views.attempts import attempt_asked
from apps.runs.views.data import number
from apps.runs.views.detail import taken

MAX_ROWS = 5000
SEARCH_SECONDS = 1.0
MAX_SEARCH = 500


@login_required
@require_safe
@never_cache
def rows(request: HttpRequest, run_id: int) -> HttpResponse:
    """Rows after a line, before one, or between two; `scanned` is where to go on when not `complete`."""
    run = taken(request, run_id, "view_log")
    asked = request.GET
    query: dict[str, Any] = {
        "limit": max(1, min(number(asked.get("limit"), 1000), MAX_ROWS)),
        "level": number(asked.get("level")),
        "search": asked.get("search", "")[:MAX_SEARCH],
        "seconds": SEARCH_SECONDS,
        "attempt": attempt_asked(request),
    }
    before = number(asked.get("before")) if asked.get("before") else None
    if before is not None and not asked.get("after"):
        page = selectors.log_page_before(run, before=before, **query)
    else:
        page = selectors.log_page(run, after=number(asked.get("after")), before=before, **query)
    return _json({"rows": page.rows, "scanned": page.scanned, "complete": page.complete})


@login_required
@require_safe
@never_cache
def index(request: HttpRequest, run_id: int) -> HttpResponse:
    """The shape of the whole log: the fields of LogBlock for each block of lines. `base` lines come before them."""
    run = taken(request, run_id, "view_log")
    attempt = attempt_asked(request)
    blocks = [tuple(block) for block in selectors.log_index(run, attempt=attempt)]
    first_error, base = run.first_error_line, 0
    if attempt is not None:
        rows = selectors.log_rows(run, limit=1, level=Level.ERROR, attempt=attempt)
        first_error, base = rows[0][0] if rows else None, selectors.lines_before(run, attempt=attempt)
    return _json({"blocks": blocks, "state": run.state, "first_error": first_error, "base": base})


@login_required
@require_safe
def download(request: HttpRequest, run_id: int) -> HttpResponseBase:
    run = taken(request, run_id, "view_log")
    attempt = attempt_asked(request)
    parts, name = selectors.log_text(run, attempt=attempt), f"{selectors.file_stem(run, attempt)}.log"
    return Download(parts, filename=name, content_type="text/plain; charset=utf-8")


def _json(content: dict[str, Any]) -> HttpResponse:
    return HttpResponse(orjson.dumps(content), content_type="application/json")
