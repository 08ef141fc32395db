"""Due times of many jobs by the hour or by the day: what became of them, and what is to come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Avg, DurationField, Exists, ExpressionWrapper, F, Max, OuterRef, Q, Sum
from django.db.models.functions import ExtractHour, TruncDate

from apps.accounts.models import User
from apps.jobs.models import Firing, Job, Outcome, Schedule
from apps.jobs.selectors.due import is_paused, rule_for
from apps.jobs.selectors.jobs import visible_jobs
from apps.jobs.timing import BadRule

# Of one schedule: a page must not count the seconds of a week.
MOST_PLANNED = 400
UNPREPARED, PLANNED = "unprepared", "planned"
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Tally:
    """So many due times of a job in a slot, an hour from 0 on or a day from 0 on, that went the same way.

    `what` is the state of their runs, or the outcome where there is none: a run can be skipped or fail too, so
    what could not even be prepared has a name of its own. There may be too many to come to count them: `times` is 0.
    """

    job_id: int
    slot: int
    what: str
    times: int
    average: timedelta | None = None
    longest: timedelta | None = None


def jobs_in_calendar(
    user: User | AnonymousUser, start: datetime, end: datetime, *, search: str = "", after: str = "", size: int = 40
) -> list[Job]:
    """With a schedule, or with a due time in this span; by name, those after the job that `after` names."""
    due = Firing.objects.filter(job=OuterRef("pk"), scheduled_for__gte=start, scheduled_for__lt=end)
    found = visible_jobs(user).filter(Exists(Schedule.objects.filter(job=OuterRef("pk"))) | Exists(due))
    if search:
        found = found.filter(Q(name__icontains=search) | Q(spider__name__icontains=search))
    name, _, pk = after.rpartition("~")
    if pk.isascii() and pk.isdigit() and len(pk) <= 18:
        found = found.filter(Q(name__gt=name) | Q(name=name, pk__gt=int(pk)))
    return list(found.only("name", "project", "spider", "version")[:size])


def past_tallies(jobs: Sequence[Job], start: datetime, end: datetime, zone: tzinfo, *, by_day: bool) -> list[Tally]:
    """Of jobs the caller was allowed to see; start <= due < end."""
    took = ExpressionWrapper(F("run__finished_at") - F("run__started_at"), output_field=DurationField())
    place: Any = TruncDate("scheduled_for", tzinfo=zone) if by_day else ExtractHour("scheduled_for", tzinfo=zone)
    rows = (
        Firing.objects.filter(job__in=[job.pk for job in jobs], scheduled_for__gte=start, scheduled_for__lt=end)
        .annotate(place=place)
        .values("job_id", "place", "outcome", "run__state")
        .annotate(n=Sum("times"), average=Avg(took), longest=Max(took))
        .order_by()
    )
    first = start.astimezone(zone).date()
    return [
        Tally(
            job_id=row["job_id"],
            slot=(row["place"] - first).days if by_day else row["place"],
            what=_what(row["outcome"], row["run__state"]),
            times=row["n"],
            average=row["average"],
            longest=row["longest"],
        )
        for row in rows
    ]


def _what(outcome: str, state: str | None) -> str:
    if outcome == Outcome.FIRED:
        return state or Outcome.FIRED
    return UNPREPARED if outcome == Outcome.FAILED else outcome


def planned_tallies(
    jobs: Sequence[Job], start: datetime, end: datetime, zone: tzinfo, *, now: datetime, by_day: bool
) -> list[Tally]:
    """What is to come of schedules that are on, each counted up to `MOST_PLANNED`."""
    first, last = start.astimezone(zone).date(), end - _INSTANT
    counted: dict[tuple[int, int], int] = {}
    uncounted: set[tuple[int, int]] = set()

    def slot_of(at: datetime) -> int:
        local = at.astimezone(zone)
        return (local.date() - first).days if by_day else local.hour

    own = Schedule.objects.filter(job__in=[job.pk for job in jobs], enabled=True, next_slot_at__lt=end)
    for schedule in own:
        times = _to_come(schedule, max(start, now), end)
        for at in times:
            if not is_paused(schedule, at):
                key = (schedule.job_id, slot_of(at))
                counted[key] = counted.get(key, 0) + 1
        if len(times) == MOST_PLANNED:
            uncounted |= {(schedule.job_id, slot) for slot in range(slot_of(times[-1]), slot_of(last) + 1)}
    return [
        Tally(job_id, slot, PLANNED, 0 if (job_id, slot) in uncounted else counted[job_id, slot])
        for job_id, slot in sorted(counted.keys() | uncounted)
    ]


def _to_come(schedule: Schedule, start: datetime, end: datetime) -> list[datetime]:
    since = start if schedule.start_at is None else max(start, schedule.start_at - _INSTANT)
    until = end - _INSTANT if schedule.end_at is None else min(end - _INSTANT, schedule.end_at)
    try:
        return rule_for(schedule).between(since, until, MOST_PLANNED)
    except BadRule:
        return []
