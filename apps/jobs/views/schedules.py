"""Schedules: the list of all, and the pages on which one is made, changed, paused and deleted."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.rights import may_change
from apps.core.actors import person
from apps.core.addresses import where_from
from apps.core.durations import parse_duration
from apps.core.errors import PanelError
from apps.jobs import selectors
from apps.jobs.forms.schedule_form import ScheduleForm
from apps.jobs.forms.zone_fields import zone_names
from apps.jobs.models import Clock, Job, Schedule, ScheduleType
from apps.jobs.selectors import overview
from apps.jobs.services import schedules as services
from apps.jobs.views.schedule_lines import lines_of, state_names, words_of
from apps.jobs.views.when import forecast
from apps.spiders.tables import value_rows

PAGE_SIZE = 50
LONGEST_PAUSE = 10 * 366 * 86400


@login_required
@require_safe
@never_cache
def schedule_list(request: HttpRequest) -> HttpResponse:
    """All of its state is in the address; what cannot be understood is left out."""
    now = timezone.now()
    asked = {name: request.GET.get(name, "").replace("\0", "").strip()[:100] for name in ("q", "state", "type")}
    asked["state"] = asked["state"] if asked["state"] in overview.STATES else ""
    asked["type"] = asked["type"] if asked["type"] in ScheduleType.values else ""
    after = request.GET.get("after", "").replace("\0", "")[:100]
    found = overview.schedules_at_a_glance(
        request.user,
        now=now,
        search=asked["q"],
        state=asked["state"],
        kind=asked["type"],
        after=after,
        size=PAGE_SIZE + 1,
    )
    shown = found[:PAGE_SIZE]
    names = state_names()
    context = {
        "lines": lines_of(shown, now),
        "next": overview.cursor_of(shown[-1].schedule) if len(found) > PAGE_SIZE else "",
        "paged": bool(after),
        "asked": asked,
        "filtered": any(asked.values()),
        "states": [(state, names[state]) for state in overview.STATES],
        "types": ScheduleType.choices,
        "clock": selectors.clock(),
        "may_switch": may_change(request.user, Clock),
    }
    return render(request, "schedules/list.html", context)


def _schedule_to_change(request: HttpRequest, pk: int) -> Schedule:
    return get_object_or_404(selectors.visible_schedules(request.user, "schedule"), pk=pk)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest, pk: int) -> HttpResponse:
    job = get_object_or_404(selectors.visible_jobs(request.user, "schedule"), pk=pk)
    return _edited(request, job, None)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    schedule = _schedule_to_change(request, pk)
    return _edited(request, schedule.job, schedule)


def _edited(request: HttpRequest, job: Job, schedule: Schedule | None) -> HttpResponse:
    now = timezone.now()
    form = ScheduleForm(
        request.POST if request.method == "POST" else None,
        now=now,
        zone=timezone.get_current_timezone_name(),
        schedule=schedule,
    )
    if request.method == "POST" and form.is_valid():
        by = person(request.user)
        try:
            if schedule is None:
                saved = services.create_schedule(job=job, by=by, now=now, **form.changes)
            else:
                saved = services.update_schedule(schedule=schedule, by=by, now=now, seen=form.seen_at, **form.changes)
        except PanelError as error:
            form.take(error)
        else:
            messages.success(request, _("Saved: it runs %(words)s.") % {"words": words_of(saved)})
            return redirect("jobs:detail", job.pk)
    version = selectors.version_of(job)
    context: dict[str, Any] = {
        "form": form,
        "job": job,
        "schedule": schedule,
        "zones": zone_names(),
        "parameters": value_rows(version.parameter_schema if version else {}, job.parameters, job.secrets),
    }
    return render(request, "schedules/form.html", context, status=422 if form.errors else 200)


@login_required
@never_cache
@require_safe
def preview(request: HttpRequest) -> HttpResponse:
    """What the boxes come to, as they are typed; `?schedule=` or `?job=` say whose they are."""
    now, own, job = timezone.now(), None, None
    if number := _number(request.GET.get("schedule", "")):
        own = get_object_or_404(selectors.visible_schedules(request.user), pk=number)
        job = own.job
    elif number := _number(request.GET.get("job", "")):
        job = get_object_or_404(selectors.visible_jobs(request.user), pk=number)
    form = ScheduleForm(
        request.GET,
        now=now,
        zone=timezone.get_current_timezone_name(),
        schedule=own,
        optional="optional" in request.GET,
    )
    form.is_valid()
    average = overview.average_seconds(job) if job else None
    context = {"form": form, "forecast": forecast(form, now=now, average_seconds=average)}
    return render(request, "schedules/_preview.html", context)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """GET asks, for browsers without a script; POST does it."""
    schedule = _schedule_to_change(request, pk)
    job, words = schedule.job, words_of(schedule)
    if request.method != "POST":
        return render(request, "schedules/delete.html", {"schedule": schedule, "job": job, "words": words})
    services.delete_schedule(schedule=schedule, by=person(request.user), now=timezone.now())
    messages.success(request, _("The schedule is deleted. Its runs and its ledger are kept."))
    return redirect("jobs:detail", job.pk)


@login_required
@require_POST
def switch(request: HttpRequest, pk: int) -> HttpResponse:
    """`on=1` or `on=0`: said twice is once."""
    schedule = _schedule_to_change(request, pk)
    wanted = request.POST.get("on") == "1"
    services.set_enabled(schedule=schedule, by=person(request.user), now=timezone.now(), enabled=wanted)
    said = _("Switched on: it runs %(words)s.") if wanted else _("Switched off: it does not run %(words)s any more.")
    messages.success(request, said % {"words": words_of(schedule)})
    return redirect(where_from(request))


@login_required
@require_POST
def pause(request: HttpRequest, pk: int) -> HttpResponse:
    schedule, now = _schedule_to_change(request, pk), timezone.now()
    span, reason = request.POST.get("for", "").strip(), request.POST.get("reason", "")
    until = now + timedelta(seconds=min(parse_duration(span), LONGEST_PAUSE)) if span else None
    services.pause_schedule(schedule=schedule, by=person(request.user), now=now, reason=reason, until=until)
    messages.success(request, _("Paused. Its times are kept in the ledger as skipped until it goes on."))
    return redirect(where_from(request))


@login_required
@require_POST
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    schedule = _schedule_to_change(request, pk)
    services.resume_schedule(schedule=schedule, by=person(request.user), now=timezone.now())
    messages.success(request, _("It goes on. Times that have passed stay skipped."))
    return redirect(where_from(request))


def _may_switch(request: HttpRequest) -> None:
    """For all who may not stop the whole panel there is no such address."""
    if not may_change(request.user, Clock):
        raise Http404


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def all_off(request: HttpRequest) -> HttpResponse:
    """Asks for the reason, and stops all scheduling."""
    _may_switch(request)
    clock, wrong = selectors.clock(), ""
    why = request.POST.get("why", clock.off_why)
    if request.method == "POST":
        try:
            services.scheduling_off(by=person(request.user), now=timezone.now(), why=why)
        except PanelError as error:
            wrong = error.message
        else:
            return redirect("schedules:list")
    context = {"why": why, "wrong": wrong, "clock": clock}
    return render(request, "schedules/off.html", context, status=422 if wrong else 200)


@login_required
@require_POST
def all_on(request: HttpRequest) -> HttpResponse:
    _may_switch(request)
    services.scheduling_on(by=person(request.user), now=timezone.now())
    messages.success(request, _("Scheduling is on again. Times that have passed stay skipped."))
    return redirect("schedules:list")
