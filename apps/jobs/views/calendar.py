"""The calendar: jobs down, hours of a day or days of a week across, what became of each due time in the cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, tzinfo

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.formats import date_format
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.core.durations import format_duration
from apps.jobs.models import Job, Outcome
from apps.jobs.selectors import calendar
from apps.jobs.selectors.calendar import PLANNED, UNPREPARED, Tally
from apps.runs.states import State

PAGE_SIZE = 40
FULL_BAR = 100
# What a cell shows when several things happened in it: the first of these.
WORST = (
    *(UNPREPARED, State.FAILED, State.TIMED_OUT, State.LOST, Outcome.MISSED, State.STOPPING, State.CANCELED),
    *(Outcome.SKIPPED, State.RUNNING, State.STARTING, State.PAUSED, State.RETRY_WAIT, State.QUEUED, State.WAITING),
    *(Outcome.FIRED, State.SUCCEEDED, PLANNED),
)
_RANK = {str(what): place for place, what in enumerate(WORST)}


@dataclass(frozen=True, slots=True)
class Column:
    label: str
    title: str
    start: datetime
    end: datetime
    now: bool


@dataclass(slots=True)
class Cell:
    """`bar`: the average length of its runs, in percent of the longest average of the row."""

    column: Column
    link: str
    title: str
    tallies: list[Tally] = field(default_factory=list)
    bar: int = 0

    @property
    def what(self) -> str:
        return self.tallies[0].what if self.tallies else ""

    @property
    def times(self) -> int:
        """Past ones and those to come are not added up: a cell of the present shows what there was."""
        past = sum(tally.times for tally in self.tallies if tally.what != PLANNED)
        return past or sum(tally.times for tally in self.tallies)

    @property
    def average(self) -> timedelta | None:
        """Over all of its runs."""
        known = [(tally.average, tally.times) for tally in self.tallies if tally.average is not None]
        runs = sum(times for _average, times in known)
        return sum((average * times for average, times in known), timedelta()) / runs if runs else None


@dataclass(frozen=True, slots=True)
class Row:
    job: Job
    cells: list[Cell]


def names_of() -> dict[str, str]:
    """The word for each thing that may have become of a due time."""
    return {
        **{str(value): str(label) for value, label in State.choices},
        Outcome.FIRED: _("Fired"),
        Outcome.MISSED: _("Missed"),
        UNPREPARED: _("Failed to prepare"),
        PLANNED: _("Planned"),
    }


def columns_of(first: date, zone: tzinfo, *, by_day: bool, now: datetime) -> list[Column]:
    """Seven days, or the hours of one; where the clock is changed an hour is empty or holds two."""
    if by_day:
        days = [first + timedelta(days=number) for number in range(7)]
        spans = [(_at(day, 0, zone), _at(day + timedelta(days=1), 0, zone)) for day in days]
        labels = [(date_format(day, "D j"), date_format(day, "Y-m-d")) for day in days]
    else:
        ends = [*range(1, 24), 0]
        spans = [
            (_at(first, hour, zone), _at(first + timedelta(days=hour == 23), ends[hour], zone)) for hour in range(24)
        ]
        labels = [(f"{hour:02d}", f"{hour:02d}:00") for hour in range(24)]
    return [
        Column(label, title, start, end, start <= now < end)
        for (label, title), (start, end) in zip(labels, spans, strict=True)
    ]


def _at(day: date, hour: int, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(hour), tzinfo=zone)


def rows_of(jobs: list[Job], columns: list[Column], tallies: list[Tally]) -> list[Row]:
    by_cell: dict[tuple[int, int], list[Tally]] = {}
    for tally in tallies:
        by_cell.setdefault((tally.job_id, tally.slot), []).append(tally)
    names = names_of()
    return [_row(job, columns, by_cell, names) for job in jobs]


def _title(column: Column, tallies: list[Tally], names: dict[str, str]) -> str:
    """Everything that is in a cell, for the mouse and for those who cannot see it."""
    parts = []
    for tally in tallies:
        part = f"{names.get(tally.what, tally.what)}: {tally.times or '…'}"
        if tally.average is not None and tally.longest is not None:
            spans = {
                "average": _spelled(tally.average),
                "longest": _spelled(tally.longest),
            }
            part += " " + _("(%(average)s on average, %(longest)s at most)") % spans
        parts.append(part)
    return f"{column.title} · {', '.join(parts)}"


def _spelled(span: timedelta) -> str:
    return format_duration(round(span.total_seconds()))


def _row(job: Job, columns: list[Column], by_cell: dict[tuple[int, int], list[Tally]], names: dict[str, str]) -> Row:
    ledger = reverse("jobs:ledger", args=[job.pk])
    cells = []
    for slot, column in enumerate(columns):
        found = sorted(by_cell.get((job.pk, slot), ()), key=lambda tally: _RANK.get(tally.what, 0))
        span = {"from": _written(column.start), "to": _written(column.end)}
        cells.append(Cell(column, f"{ledger}?{urlencode(span)}", _title(column, found, names), found))
    longest = max((cell.average for cell in cells if cell.average), default=None)
    for cell in cells:
        if longest and cell.average:
            cell.bar = max(4, round(FULL_BAR * cell.average / longest))
    return Row(job, cells)


def _written(moment: datetime) -> str:
    return timezone.localtime(moment).strftime("%Y-%m-%dT%H:%M")


@login_required
@require_safe
@never_cache
def show(request: HttpRequest) -> HttpResponse:
    """`?view=day|week&date=…`, in the reader's time zone; a date that cannot be read is today."""
    now, zone = timezone.now(), timezone.get_current_timezone()
    by_day = request.GET.get("view") == "week"
    today = timezone.localdate(now)
    chosen = _date(request.GET.get("date", "")) or today
    first = chosen - timedelta(days=chosen.weekday()) if by_day else chosen
    columns = columns_of(first, zone, by_day=by_day, now=now)
    start, end = columns[0].start, columns[-1].end
    search = request.GET.get("q", "").replace("\0", "").strip()[:100]
    after = request.GET.get("after", "").replace("\0", "")[:300]
    found = calendar.jobs_in_calendar(request.user, start, end, search=search, after=after, size=PAGE_SIZE + 1)
    jobs = found[:PAGE_SIZE]
    tallies = calendar.past_tallies(jobs, start, end, zone, by_day=by_day)
    tallies += calendar.planned_tallies(jobs, start, end, zone, now=now, by_day=by_day)
    step = timedelta(days=7 if by_day else 1)
    context = {
        "columns": columns,
        "rows": rows_of(jobs, columns, tallies),
        "legend": _legend(tallies),
        "by_day": by_day,
        "first": first,
        "last": first + step - timedelta(days=1),
        "earlier": (first - step).isoformat(),
        "later": (first + step).isoformat(),
        "today": first <= today < first + step,
        "search": search,
        "paged": bool(after),
        "next": f"{jobs[-1].name}~{jobs[-1].pk}" if len(found) > PAGE_SIZE else "",
    }
    return render(request, "schedules/calendar.html", context)


def _legend(tallies: list[Tally]) -> list[tuple[str, str]]:
    """What is on the page, with its word."""
    names, there = names_of(), {tally.what for tally in tallies}
    return [(str(what), names[what]) for what in WORST if what in there]


def _date(text: str) -> date | None:
    """Far from the ends of the calendar, so that a week can be added."""
    try:
        found = parse_date(text)
    except ValueError:
        return None
    return found if found and 1971 <= found.year <= 9990 else None
