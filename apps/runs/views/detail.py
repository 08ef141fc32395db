"""The page of one run: its head, its tabs and its buttons."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from apps.accounts import rights
from apps.core.actors import person
from apps.core.addresses import where_from
from apps.core.schema_forms.ordering import names_in_order
from apps.core.schema_forms.texts import title_of
from apps.runs import reasons, selectors, services
from apps.runs.models import Run, RunEvent
from apps.runs.states import ACTIVE, Level, State, Trigger
from apps.runs.views import data, words
from apps.runs.views.cells import cell_of

TABS = ("log", "data", "metrics", "parameters", "events")
# What a tab shows beyond the run itself needs a right of its own.
TAB_RIGHTS = {"log": "view_log", "data": "view_data"}
PAGE_RIGHTS = ("view_log", "view_data", "export_data", "stop", "run")


def taken(request: HttpRequest, run_id: int, action: str) -> Run:
    """The run, if the visitor may do `action` on it; all others get the answer for what does not exist."""
    run: Run = get_object_or_404(selectors.visible_runs_for_page(request.user, action), pk=run_id)
    return run


@login_required
@require_safe
@never_cache
def detail(request: HttpRequest, run_id: int) -> HttpResponse:
    run = taken(request, run_id, "view")
    may = rights.actions_on(request.user, run, PAGE_RIGHTS)
    shown = [tab for tab in TABS if TAB_RIGHTS.get(tab) is None or TAB_RIGHTS[tab] in may]
    tab = request.GET.get("tab") or _default_tab(run, shown)
    if tab not in shown:
        raise Http404
    context = head_context(run, may) | {
        "tab": tab,
        "tabs": [(name, _tab_title(name)) for name in shown],
        "tab_template": f"runs/detail/_{tab}.html",
    }
    return render(request, "runs/detail/page.html", context | _TAB_CONTEXTS[tab](request, run))


@login_required
@require_safe
@never_cache
def head(request: HttpRequest, run_id: int) -> HttpResponse:
    """The head again, asked for while the run is active."""
    run = taken(request, run_id, "view")
    may = rights.actions_on(request.user, run, PAGE_RIGHTS)
    return render(request, "runs/detail/_head.html", head_context(run, may))


@login_required
@require_POST
def stop(request: HttpRequest, run_id: int) -> HttpResponse:
    run = taken(request, run_id, "stop")
    services.request_stop(run=run, by=person(request.user), now=timezone.now())
    return redirect(where_from(request, otherwise=reverse("runs:detail", args=(run_id,))))


@login_required
@require_POST
def rerun(request: HttpRequest, run_id: int) -> HttpResponse:
    run = taken(request, run_id, "run")
    again = services.rerun(run=run, by=person(request.user), now=timezone.now(), trigger=Trigger.MANUAL)
    return redirect("runs:detail", again.pk)


def head_context(run: Run, may: frozenset[str]) -> dict[str, Any]:
    now = timezone.now()
    active = run.state in ACTIVE
    return {
        "run": run,
        "may": may,
        "active": active,
        "reason": _reason(run, now),
        "can_stop": active and run.state != State.STOPPING and "stop" in may,
        "can_rerun": not active and "run" in may,
        "phases": _phases(run),
        "memory_percent": min(100, round(100 * run.memory_peak_bytes / run.memory_bytes)) if run.memory_bytes else 0,
    }


def _default_tab(run: Run, shown: list[str]) -> str:
    wanted = "data" if run.state not in ACTIVE and run.items else "log"
    return wanted if wanted in shown else shown[0]


def _tab_title(name: str) -> str:
    return {
        "log": pgettext("tab", "Log"),
        "data": pgettext("tab", "Data"),
        "metrics": pgettext("tab", "Metrics"),
        "parameters": pgettext("tab", "Parameters"),
        "events": pgettext("tab", "Events"),
    }[name]


def _reason(run: Run, now: datetime) -> str:
    if run.state == State.QUEUED:
        return services.why_waiting(run, now)
    said = reasons.sentence(run)
    if run.memory_warning:
        said = f"{said} {reasons.memory_sentence(memory_mb=run.memory_bytes // 1024 // 1024)}".strip()
    return said


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of the run's life; without an end it is going on."""

    label: str
    begin: datetime
    end: datetime | None


def _phases(run: Run) -> list[Phase]:
    """Waiting and running; what lies between them is on the Events tab."""
    until = run.started_at or run.finished_at
    phases = [Phase(pgettext("phase of a run", "Queued"), run.queued_at, until)]
    if run.started_at:
        phases.append(Phase(pgettext("phase of a run", "Running"), run.started_at, run.finished_at))
    return phases


def _log_context(request: HttpRequest, run: Run) -> dict[str, Any]:
    level = data.number(request.GET.get("level"), Level.INFO)
    return {
        "levels": [(10, _("All levels")), (20, "INFO"), (30, "WARNING"), (40, "ERROR"), (50, "CRITICAL")],
        "level": level if level in Level.values else Level.INFO,
        "log_words": words.log_words(),
    }


def _metrics_context(request: HttpRequest, run: Run) -> dict[str, Any]:
    return {"samples": selectors.samples(run, limit=30), "chart_words": words.chart_words()}


def _titles(schema: dict[str, Any]) -> dict[str, str]:
    """Of the parameters in the form's order. A schema may be any JSON; only objects describe a parameter."""
    known = schema.get("properties")
    if not isinstance(known, dict):
        return {}
    return {name: title_of(known[name], name) for name in names_in_order(schema) if isinstance(known[name], dict)}


def _parameters_context(request: HttpRequest, run: Run) -> dict[str, Any]:
    spec = run.spec
    given, secrets = spec.get("parameters", {}), sorted(spec.get("secrets", {}))
    titles = _titles(run.version.parameter_schema)
    order = [*(name for name in titles if name in given), *(name for name in given if name not in titles)]
    return {
        "parameters": [(name, titles.get(name, name), cell_of(given[name])) for name in order],
        "secrets": [(name, titles.get(name, name)) for name in secrets],
        "environment": sorted(spec.get("env", {}).items()),
        "command": shlex.join(map(str, spec.get("command", []))),
        "limits": spec.get("limits", {}),
        "attempts": selectors.attempts(run),
    }


@dataclass(frozen=True, slots=True)
class EventLine:
    event: RunEvent
    title: str
    sentence: str


def _events_context(request: HttpRequest, run: Run) -> dict[str, Any]:
    return {"events": [EventLine(each, _event_title(each), reasons.sentence(each)) for each in selectors.events(run)]}


def _event_title(event: RunEvent) -> str:
    if event.to_state in State.values:
        return str(State(event.to_state).label)
    return _("Taken over by another worker") if event.kind == "adopted" else event.kind


def _data_context(request: HttpRequest, run: Run) -> dict[str, Any]:
    return data.page_context(run, after=data.number(request.GET.get("after")), raw=request.GET.get("raw") == "1")


_TAB_CONTEXTS = {
    "log": _log_context,
    "data": _data_context,
    "metrics": _metrics_context,
    "parameters": _parameters_context,
    "events": _events_context,
}
