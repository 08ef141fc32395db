"""Batches: what one trigger has caused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.rights import actions_on, can
from apps.core.actors import person
from apps.jobs.services import batches, groups
from apps.jobs.views.batch_nodes import counts, drawn, nodes_of
from apps.jobs.views.group_page import group_context
from apps.runs.models import Batch
from apps.runs.selectors.batches import BatchGraph, batch_state, runs_of, visible_batches
from apps.runs.selectors.groups import Progress, progress, progress_of
from apps.runs.states import State

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A batch as the list shows it."""

    batch: Batch
    progress: Progress
    state: State


def rows_of_batches(found: list[Batch]) -> list[BatchRow]:
    counted = progress_of(found)
    return [BatchRow(batch, counted[batch.pk], batch_state(batch, counted[batch.pk])) for batch in found]


@login_required
@require_safe
@never_cache
def batch_list(request: HttpRequest) -> HttpResponse:
    job, after = (_number(request.GET.get(name)) for name in ("job", "after"))
    kind = request.GET.get("kind", "")
    found = visible_batches(request.user).order_by("-pk")
    if job:
        found = found.filter(job=job)
    if kind in Batch.Kind.values:
        found = found.filter(kind=kind)
    if after:
        found = found.filter(pk__lt=after)
    rows = rows_of_batches(list(found[: PAGE_SIZE + 1]))
    context = {
        "rows": rows[:PAGE_SIZE],
        "next": rows[PAGE_SIZE - 1].batch.pk if len(rows) > PAGE_SIZE else None,
        "kinds": Batch.Kind.choices,
        "kind": kind,
        "job": job,
        "filtered": bool(job or kind),
        "paged": bool(after),
    }
    return render(request, "batches/list.html", context)


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 18 else 0


@login_required
@require_safe
@never_cache
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    return render(request, "batches/detail.html", _context(request, pk))


@login_required
@require_safe
@never_cache
def live(request: HttpRequest, pk: int) -> HttpResponse:
    """All that changes, asked for while the batch goes on."""
    return render(request, "batches/_live.html", _context(request, pk))


def _context(request: HttpRequest, pk: int) -> dict[str, Any]:
    batch: Batch = get_object_or_404(visible_batches(request.user).select_related("origin", "schedule"), pk=pk)
    may = actions_on(request.user, batch, ("stop", "run"))
    context = _graph_context(request, batch) if batch.kind == Batch.Kind.GRAPH else _group_context(request, batch)
    own: Progress = context["progress"]
    return context | {
        "batch": batch,
        "may": may,
        "state": batch_state(batch, own),
        "open": batch.finished_at is None,
        "offers_stop": "stop" in may and batch.finished_at is None and batch.canceled_at is None,
        "offers_again": "run" in may and batch.finished_at is not None and context["failed"],
        "offers_rest": "run" in may and batch.finished_at is not None and context.get("canceled"),
        "sequels": visible_batches(request.user).filter(origin=batch).order_by("pk"),
        "origin_visible": batch.origin is not None and can(request.user, "view", batch.origin),
    }


def _graph_context(request: HttpRequest, batch: Batch) -> dict[str, Any]:
    nodes = nodes_of(batch, request.user, timezone.now())
    return {
        "nodes": nodes,
        "graph": drawn(batch, nodes),
        "progress": Progress(dict(counts(nodes))),
        "failed": bool(batches.failed_in(BatchGraph.read(batch.graph), runs_of(batch))),
        "watched": [view.run.pk for view in nodes if view.run is not None],
    }


def _group_context(request: HttpRequest, batch: Batch) -> dict[str, Any]:
    counted = progress(batch)
    return {"progress": counted, "failed": bool(counted.failed), **group_context(request, batch)}


@login_required
@require_POST
def stop(request: HttpRequest, pk: int) -> HttpResponse:
    batch = get_object_or_404(visible_batches(request.user, "stop"), pk=pk)
    batches.stop_batch(batch=batch, by=person(request.user), now=timezone.now())
    return redirect("batches:detail", pk)


@login_required
@require_POST
def again(request: HttpRequest, pk: int) -> HttpResponse:
    batch = get_object_or_404(visible_batches(request.user, "run"), pk=pk)
    by, now = person(request.user), timezone.now()
    if batch.kind == Batch.Kind.GRAPH:
        new = batches.again_from_failed(batch=batch, by=by, now=now)
    else:
        new = groups.run_failed_again(batch=batch, by=by, now=now, canceled="canceled" in request.POST)
    return redirect("batches:detail", new.pk)
