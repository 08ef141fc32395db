"""Making up for times of a schedule that lie in the past."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from apps.core.actors import person
from apps.core.errors import PanelError
from apps.jobs import selectors, timing
from apps.jobs.forms.zone_fields import WallClockField, in_zone, on_the_wall
from apps.jobs.models import Schedule
from apps.jobs.services import groups
from apps.runs.models import Batch
from apps.runs.selectors import groups as group_reads

RECENT = 10
USUAL_SPAN = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class TimeLine:
    """A time in the list: by the schedule's clock, with the run it has had, if any."""

    at: datetime
    local: str
    run: Any
    chosen: bool
    # It has a run, and nobody has asked for another.
    locked: bool


@dataclass(slots=True)
class BackfillForm:
    """What was typed, by the clock of the schedule's zone, and what it came to."""

    schedule: Schedule
    start: str
    end: str
    concurrency: str
    priority: str
    again: bool = False
    # Of the list that was shown; None: none was.
    chosen: frozenset[str] | None = None
    times: list[groups.DueTime] = field(default_factory=list)
    errors: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, schedule: Schedule, asked: QueryDict, now: datetime) -> BackfillForm:
        return cls(
            schedule=schedule,
            start=asked.get("start", _local(schedule, now - USUAL_SPAN)).strip(),
            end=asked.get("end", _local(schedule, now)).strip(),
            concurrency=asked.get("concurrency", str(groups.DEFAULT_CONCURRENCY)).strip(),
            priority=asked.get("priority", str(groups.default_priority(schedule.job.priority))).strip(),
            again=asked.get("again") == "on",
            chosen=frozenset(asked.getlist("at")) if "listed" in asked else None,
        )

    def look(self, now: datetime) -> None:
        start, end = self._instant("start"), self._instant("end")
        if start is None or end is None:
            return
        try:
            self.times = groups.preview_backfill(schedule=self.schedule, start=start, end=end, now=now)
        except PanelError as error:
            self.take(error)

    def _instant(self, name: str) -> datetime | None:
        try:
            instant = in_zone(WallClockField().to_python(getattr(self, name)), self.schedule.timezone)
        except ValidationError as error:
            self.errors[name] = list(error.messages)
            return None
        if instant is None:
            self.errors[name] = [_("Enter a date and a time.")]
        return instant

    def start_with(self, request: HttpRequest, now: datetime) -> Batch | None:
        """The group, or nothing when it was refused; the errors then say why."""
        if self.errors:
            return None
        instants = [each.at for each in self.times]
        if self.chosen is not None:
            instants = [at for at in instants if at.isoformat() in self.chosen]
        try:
            return groups.start_backfill(
                schedule=self.schedule,
                by=person(request.user),
                now=now,
                instants=instants,
                concurrency=_number(self.concurrency),
                priority=_number(self.priority),
                again=self.again,
            )
        except PanelError as error:
            self.take(error)
            return None

    def take(self, error: PanelError) -> None:
        for name, sentences in (error.fields or {"instants": [error.message]}).items():
            known = name in ("start", "end", "concurrency", "priority", "again")
            told = (
                sentences
                if known or name == "instants"
                else [f"{name.partition('.')[2]}: {each}" for each in sentences]
            )
            self.errors.setdefault(name if known else "instants", []).extend(told)

    @property
    def range_errors(self) -> list[tuple[str, list[str]]]:
        return [(name, self.errors[name]) for name in ("start", "end", "instants") if name in self.errors]

    @property
    def lines(self) -> list[TimeLine]:
        zone = timing.zone_of(self.schedule.timezone)
        shape = "%Y-%m-%d %H:%M:%S %Z" if self.schedule.type == "interval" else "%Y-%m-%d %H:%M %Z"
        return [
            TimeLine(
                each.at,
                each.at.astimezone(zone).strftime(shape),
                each.run,
                chosen=(each.run is None or self.again) if self.chosen is None else each.at.isoformat() in self.chosen,
                locked=each.run is not None and not self.again,
            )
            for each in self.times
        ]

    @property
    def summary(self) -> str:
        n, gone = len(self.times), sum(each.run is not None for each in self.times)
        said = ngettext("%(n)d time", "%(n)d times", n) % {"n": n}
        if gone:
            had = ngettext("%(n)d of them has a run already", "%(n)d of them have a run already", gone) % {"n": gone}
            return f"{said} · {had}"
        return said


def _local(schedule: Schedule, instant: datetime) -> str:
    """As the box of the browser has it."""
    wall = on_the_wall(instant, schedule.timezone)
    return wall.isoformat(timespec="minutes") if wall else ""


def _number(text: str) -> int:
    """0 is no number that the service takes."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0


def _startable(request: HttpRequest) -> QuerySet[Schedule]:
    """To change what runs when, and to run it, are two rights."""
    runnable = selectors.visible_jobs(request.user, "run")
    return selectors.visible_schedules(request.user, "schedule").filter(job__in=runnable.order_by())


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def backfill(request: HttpRequest, pk: int) -> HttpResponse:
    """GET shows the times of a range, POST starts them."""
    schedule = get_object_or_404(_startable(request), pk=pk)
    now = timezone.now()
    form = BackfillForm.read(schedule, request.POST if request.method == "POST" else request.GET, now)
    form.look(now)
    if request.method == "POST" and (batch := form.start_with(request, now)):
        messages.success(request, _("The backfill is started."))
        return redirect("batches:detail", batch.pk)
    if request.headers.get("HX-Request"):
        return render(request, "schedules/_backfill_times.html", {"form": form})
    status = 422 if request.method == "POST" else 200
    return render(request, "schedules/backfill.html", _context(schedule, form), status=status)


def _words(schedule: Schedule) -> str:
    try:
        return timing.words(selectors.rule_for(schedule))
    except timing.BadRule:
        return ""


def _context(schedule: Schedule, form: BackfillForm) -> Mapping[str, Any]:
    return {
        "schedule": schedule,
        "job": schedule.job,
        "form": form,
        "words": _words(schedule),
        "earlier": group_reads.glances(schedule.job_id, Batch.Kind.BACKFILL, schedule_id=schedule.pk, most=RECENT),
    }
