"""The numbers behind the Metrics tab."""

from __future__ import annotations

from itertools import pairwise

import orjson
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.runs import selectors
from apps.runs.models import ResourceSample
from apps.runs.states import ACTIVE
from apps.runs.views.detail import taken

MIB = 1024 * 1024


@login_required
@require_safe
@never_cache
def samples(request: HttpRequest, run_id: int) -> HttpResponse:
    """Column by column, as uPlot wants them."""
    run = taken(request, run_id, "view")
    rows = selectors.samples(run)
    content = {
        "active": run.state in ACTIVE,
        "at": [row.at.timestamp() for row in rows],
        "cpu": [round(row.cpu_percent, 1) for row in rows],
        "memory": [round(row.memory_bytes / MIB, 1) for row in rows],
        "limit": [round(row.memory_limit_bytes / MIB, 1) for row in rows],
        "items": _a_minute(rows),
    }
    return HttpResponse(orjson.dumps(content), content_type="application/json")


def _a_minute(rows: list[ResourceSample]) -> list[float | None]:
    """Items a minute between each sample and the one before; unknown for the first."""
    rates: list[float | None] = [None] if rows else []
    for old, new in pairwise(rows):
        seconds = (new.at - old.at).total_seconds()
        rates.append(round(max(0, new.items - old.items) * 60 / seconds, 1) if seconds > 0 else None)
    return rates
