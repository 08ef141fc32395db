"""The run list: the page people come home to."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.runs import actions, reasons
from apps.runs.forms import ACTIVE_WORD, SPANS, RunFilter, read_ids, read_sort
from apps.runs.models import Run
from apps.runs.selectors import listing
from apps.runs.states import ACTIVE, TERMINAL, State, Trigger


@dataclass(frozen=True, slots=True)
class Row:
    """A run with what may be done to it by this person."""

    run: Run
    state: str
    trigger: str
    reason: str
    active: bool
    offered: frozenset[str]


def rows_of(user: Any, runs: list[Run]) -> list[Row]:
    """Two queries for the rights of all rows together."""
    stoppable = listing.with_right(user, "stop", [run for run in runs if run.state in ACTIVE])
    runnable = listing.with_right(user, "run", [run for run in runs if run.state in TERMINAL])
    # Django's own get_…_display costs more than the rest of a row.
    states = {value: str(label) for value, label in State.choices}
    triggers = {value: str(label) for value, label in Trigger.choices}
    return [
        Row(
            run=run,
            state=states[run.state],
            trigger=triggers[run.trigger],
            reason=_reason(run),
            active=run.state in ACTIVE,
            offered=actions.offered(run, _rights_on(run, stoppable, runnable)),
        )
        for run in runs
    ]


def _rights_on(run: Run, stoppable: Container[int], runnable: Container[int]) -> list[str]:
    return [right for right, ids in (("stop", stoppable), ("run", runnable)) if run.pk in ids]


def _reason(run: Run) -> str:
    said = reasons.sentence(run)
    if run.memory_warning and not said:
        said = _("A part of it was killed for memory.")
    return said


def _wanted(asked: RunFilter, user: Any, now: datetime) -> listing.Wanted:
    return listing.Wanted(
        states=asked.wanted_states,
        job=asked.job,
        spider=asked.spider,
        trigger=asked.trigger,
        since=now - asked.span if asked.span else None,
        search=asked.search,
        requested_by=user.pk if asked.mine else None,
    )


@login_required
@require_safe
@never_cache
def run_list(request: HttpRequest) -> HttpResponse:
    """All of its state is in the address."""
    user, now = request.user, timezone.now()
    asked, sort = RunFilter.read(request.GET), read_sort(request.GET)
    after = request.GET.get("after", "")
    page = listing.run_page(user, _wanted(asked, user, now), sort=sort, after=after, now=now)
    jobs = listing.job_choices(user)
    context = {
        "rows": rows_of(user, page.rows),
        "selectable": True,
        "next": page.next,
        "paged": bool(after),
        "asked": asked,
        "sort": sort,
        "newest": max((run.pk for run in page.rows), default=0),
        "states": [(ACTIVE_WORD, _("Active")), *State.choices],
        "triggers": Trigger.choices,
        "spans": [(key, label) for key, (label, _span) in SPANS.items()],
        "jobs": jobs,
        "spiders": listing.spider_choices(user),
        "chips": _chips(asked, dict(jobs)),
    }
    return render(request, "runs/list.html", context)


def _chips(asked: RunFilter, jobs: dict[int, str]) -> list[dict[str, Any]]:
    """What is filtered by, each with the address that leaves it out."""
    chips: list[dict[str, Any]] = [
        {
            "text": _("Active") if state == ACTIVE_WORD else State(state).label,
            "key": "state",
            "rest": [other for other in asked.states if other != state],
        }
        for state in asked.states
    ]
    if asked.job is not None:
        name = jobs.get(asked.job, f"#{asked.job}")
        chips.append({"text": _("Job: %(name)s") % {"name": name}, "key": "job"})
    if asked.spider:
        chips.append({"text": _("Spider: %(name)s") % {"name": asked.spider}, "key": "spider"})
    if asked.trigger:
        chips.append({"text": Trigger(asked.trigger).label, "key": "trigger"})
    if asked.since:
        chips.append({"text": SPANS[asked.since][0], "key": "since"})
    if asked.search:
        chips.append({"text": f"“{asked.search}”", "key": "q"})
    if asked.mine:
        chips.append({"text": _("Mine"), "key": "mine"})
    return chips


@login_required
@require_safe
@never_cache
def run_rows(request: HttpRequest) -> HttpResponse:
    """The rows of `ids` as they are now; the header says how many runs the list would show above `newest`."""
    user, now = request.user, timezone.now()
    runs = listing.runs_by_id(user, read_ids(request.GET.get("ids", "")))
    context = {"rows": rows_of(user, runs), "selectable": request.GET.get("select") == "1"}
    response = render(request, "runs/_rows.html", context)
    newest = read_ids(request.GET.get("newest", ""))
    if newest:
        wanted = _wanted(RunFilter.read(request.GET), user, now)
        response["X-New-Runs"] = str(listing.newer_than(user, wanted, newest=newest[0]))
    return response
