"""The page of one run: its head, its tabs and its buttons."""

from __future__ import annotations

import shlex
from typing import Any

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AnonymousUser
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.accounts import rights
from apps.accounts.models import User
from apps.core.schema_forms.ordering import names_in_order
from apps.core.schema_forms.texts import title_of
from apps.runs import actions, selectors
from apps.runs.models import Run
from apps.runs.policies import RetryPolicy
from apps.runs.states import ACTIVE, Level
from apps.runs.views import attempts, data, story, words
from apps.runs.views.cells import cell_of
from apps.runs.views.typed import typed_in

TABS = ("log", "data", "metrics", "parameters", "events")
# What a tab shows beyond the run itself needs a right of its own.
TAB_RIGHTS = {"log": "view_log", "data": "view_data"}
PAGE_RIGHTS = ("view_log", "view_data", "export_data", "stop", "run", "edit")


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
    context = head_context(request.user, run, may) | {
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
    return render(request, "runs/detail/_head.html", head_context(request.user, run, may))


def head_context(user: User | AnonymousUser, run: Run, may: frozenset[str]) -> dict[str, Any]:
    return {
        "run": run,
        "batch": run.batch if run.batch is not None and rights.can(user, "view", run.batch) else None,
        "may": may,
        "active": run.state in ACTIVE,
        "telling": story.telling(run, timezone.now()),
        "offered": actions.offered(run, may),
        "phases": story.phases(run),
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


def _log_context(request: HttpRequest, run: Run) -> dict[str, Any]:
    level = data.number(request.GET.get("level"), Level.INFO)
    return {
        "levels": [(10, _("All levels")), (20, "INFO"), (30, "WARNING"), (40, "ERROR"), (50, "CRITICAL")],
        "level": level if level in Level.values else Level.INFO,
        "log_words": words.log_words(),
        **attempts.attempts_context(request, run),
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
    limits = spec.get("limits", {})
    given, secrets = spec.get("parameters", {}), sorted(spec.get("secrets", {}))
    titles, typed, typed_env = _titles(run.version.parameter_schema), typed_in(run, "parameters"), typed_in(run, "env")
    order = [*(name for name in titles if name in given), *(name for name in given if name not in titles)]
    return {
        "parameters": [(name, titles.get(name, name), cell_of(given[name]), typed.get(name, "")) for name in order],
        "secrets": [(name, titles.get(name, name)) for name in secrets],
        "environment": [(name, value, typed_env.get(name, "")) for name, value in sorted(spec.get("env", {}).items())],
        "command": shlex.join(map(str, spec.get("command", []))),
        "typed_arguments": list(typed_in(run, "command").values()),
        "zone": spec.get("zone", ""),
        "waits_for_values": bool(spec.get("pending")),
        "limits": limits,
        "time_limits": [(label, limits[name]) for name, label in _time_limits() if limits.get(name) is not None],
        "retry_words": _retry_words(run),
        "selector": ", ".join(f"{name}={value}" for name, value in (spec.get("selector") or {}).items()),
        "pool_names": selectors.pool_names(run.pools),
    }


def _time_limits() -> list[tuple[str, str]]:
    """Those that an order may leave out."""
    return [
        ("start_seconds", _("Limit for the start")),
        ("idle_seconds", _("Limit without a sign of life")),
        ("total_seconds", _("Limit over all attempts")),
        ("queue_seconds", _("Limit in the queue")),
        ("pause_seconds", _("Longest pause by hand")),
    ]


def _retry_words(run: Run) -> str:
    most = RetryPolicy.read(run.spec.get("retry")).attempts
    return _("up to %(n)d attempts") % {"n": most} if most > 1 else _("none")


def _events_context(request: HttpRequest, run: Run) -> dict[str, Any]:
    lines = [attempts.attempt_line(run, each) for each in selectors.attempts(run)]
    return {"events": story.event_lines(run), "attempt_lines": lines}


def _data_context(request: HttpRequest, run: Run) -> dict[str, Any]:
    own = attempts.attempts_context(request, run)
    number = own["chosen"].attempt.number if own["chosen"] else None
    after, raw = data.number(request.GET.get("after")), request.GET.get("raw") == "1"
    return own | data.page_context(run, after=after, raw=raw, attempt=number)


_TAB_CONTEXTS = {
    "log": _log_context,
    "data": _data_context,
    "metrics": _metrics_context,
    "parameters": _parameters_context,
    "events": _events_context,
}
