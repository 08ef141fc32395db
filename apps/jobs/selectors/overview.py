"""Schedules of the whole panel, those that fire next first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, F, Min, OuterRef, Q, QuerySet, Subquery
from django.utils.dateparse import parse_datetime

from apps.accounts.models import User
from apps.accounts.rights import allowed
from apps.jobs.models import Firing, Job, Schedule, ScheduleType
from apps.jobs.selectors.schedules import visible_schedules
from apps.runs.models import Run

STATES = ("on", "paused", "off", "trouble")
RUNS_FOR_AVERAGE = 20


@dataclass(frozen=True, slots=True)
class ScheduleGlance:
    """A schedule as lists show it; `last` is the newest row of its ledger."""

    schedule: Schedule
    last: Firing | None
    may_change: bool
    may_run: bool


@dataclass(frozen=True, slots=True)
class JobTimes:
    """What the list of jobs says of the schedules of one."""

    schedules: int
    on: int
    paused: int
    next_at: datetime | None


def schedules_at_a_glance(
    user: User | AnonymousUser,
    *,
    now: datetime,
    search: str = "",
    state: str = "",
    kind: str = "",
    after: str = "",
    size: int = 50,
) -> list[ScheduleGlance]:
    """`size` at most; those after the one that `after` names (see `cursor_of`)."""
    found = visible_schedules(user)
    if search:
        found = found.filter(
            Q(job__name__icontains=search) | Q(name__icontains=search) | Q(job__spider__name__icontains=search)
        )
    if kind in ScheduleType.values:
        found = found.filter(type=kind)
    if state in STATES:
        found = found.filter(_of_state(state, now))
    found = _behind(found, after).order_by(F("next_fire_at").asc(nulls_last=True), "pk")
    return glances(user, list(found[:size]))


def _of_state(state: str, now: datetime) -> Q:
    paused = Q(paused_at__isnull=False) & (Q(paused_until__isnull=True) | Q(paused_until__gt=now))
    return {
        "on": Q(enabled=True) & ~paused,
        "paused": Q(enabled=True) & paused,
        "off": Q(enabled=False),
        "trouble": ~Q(trouble=""),
    }[state]


def cursor_of(schedule: Schedule) -> str:
    return f"{schedule.next_fire_at.isoformat() if schedule.next_fire_at else ''}~{schedule.pk}"


def _behind(found: QuerySet[Schedule], after: str) -> QuerySet[Schedule]:
    """A cursor that cannot be read starts from the top."""
    moment, _tilde, pk = after.rpartition("~")
    if not (pk.isascii() and pk.isdigit() and len(pk) <= 18):
        return found
    if not moment:
        return found.filter(next_fire_at__isnull=True, pk__gt=int(pk))
    try:
        at = parse_datetime(moment)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        return found
    later = Q(next_fire_at__gt=at) | Q(next_fire_at=at, pk__gt=int(pk)) | Q(next_fire_at__isnull=True)
    return found.filter(later)


def glances(user: User | AnonymousUser, schedules: list[Schedule]) -> list[ScheduleGlance]:
    """Of schedules the caller was allowed to see, in the same order."""
    if not schedules:
        return []
    ids = [each.pk for each in schedules]
    changeable, runnable = (
        set(allowed(user, action, Schedule).filter(pk__in=ids).values_list("pk", flat=True))
        for action in ("schedule", "run")
    )
    newest = Firing.objects.filter(schedule=OuterRef("pk")).order_by("-scheduled_for").values("pk")[:1]
    last_ids = Schedule.objects.filter(pk__in=ids).annotate(last=Subquery(newest)).values_list("pk", "last")
    firings = Firing.objects.select_related("run").in_bulk([last for _pk, last in last_ids if last])
    last = {pk: firings.get(firing) for pk, firing in last_ids}
    return [
        ScheduleGlance(each, last.get(each.pk), may_change=each.pk in changeable, may_run=each.pk in runnable)
        for each in schedules
    ]


def times_of(jobs: list[Job], now: datetime) -> dict[int, JobTimes]:
    """Of jobs the caller was allowed to see; those without a schedule are not in it."""
    rows = (
        Schedule.objects.filter(job__in=[job.pk for job in jobs])
        .values("job_id")
        .annotate(
            schedules=Count("pk"),
            on=Count("pk", filter=Q(enabled=True)),
            paused=Count("pk", filter=_of_state("paused", now)),
            next_at=Min("next_fire_at", filter=Q(enabled=True)),
        )
    )
    return {row["job_id"]: JobTimes(row["schedules"], row["on"], row["paused"], row["next_at"]) for row in rows}


def average_seconds(job: Job) -> float | None:
    """How long its last finished runs took on average; of a job the caller was allowed to see."""
    ended = Run.objects.filter(job=job, started_at__isnull=False, finished_at__isnull=False).order_by("-pk")
    spans = ended.annotate(took=F("finished_at") - F("started_at")).values_list("took", flat=True)[:RUNS_FOR_AVERAGE]
    seconds = [took.total_seconds() for took in spans]
    return sum(seconds) / len(seconds) if seconds else None
