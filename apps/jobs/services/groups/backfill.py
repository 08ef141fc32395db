"""Runs for times of a schedule that lie in the past."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.utils.translation import gettext as _

from apps.core.actors import Actor
from apps.core.errors import Invalid
from apps.jobs.models import Schedule
from apps.jobs.selectors.due import rule_for
from apps.jobs.services.groups.starting import (
    DEFAULT_CONCURRENCY,
    MOST_RUNS,
    check_concurrency,
    check_priority,
    new_group,
    orders_of,
    refuse,
    start_group,
)
from apps.jobs.services.launching import Launch
from apps.jobs.services.locking import locked_job
from apps.runs.models import Batch, Run
from apps.runs.selectors import groups
from apps.runs.states import Trigger

# Between both ends a rule gives its times without the first end: a moment earlier takes it in.
_MOMENT = timedelta(microseconds=1)
_LEAST_URGENT, _NOT_BEFORE = 9, 7
# Long before any data: at the beginning of the calendar there is no moment earlier.
FIRST_YEAR = 1970


@dataclass(frozen=True, slots=True)
class DueTime:
    """A time of the schedule, and the newest run that stands for it already, if any."""

    at: datetime
    run: Run | None = None


def default_priority(job_priority: int) -> int:
    """Behind what the job does every day."""
    return min(_LEAST_URGENT, max(job_priority + 2, _NOT_BEFORE))


def preview_backfill(*, schedule: Schedule, start: datetime, end: datetime, now: datetime) -> list[DueTime]:
    """The times of the schedule's rule from `start` to `end`, both included, as it fires them."""
    refuse(_range_faults(start, end, now))
    instants = rule_for(schedule).between(start - _MOMENT, end, MOST_RUNS + 1)
    if not instants:
        sentence = _("The schedule has no time in this range.")
        raise Invalid(sentence, fields={"end": [sentence]})
    if len(instants) > MOST_RUNS:
        sentence = _("These are more than %(most)d times. Choose a shorter range.") % {"most": MOST_RUNS}
        raise Invalid(sentence, fields={"end": [sentence]})
    known = groups.runs_for_times(schedule_id=schedule.pk, first=instants[0], last=instants[-1])
    return [DueTime(at, known.get(at)) for at in instants]


@transaction.atomic
def start_backfill(
    *,
    schedule: Schedule,
    by: Actor,
    now: datetime,
    start: datetime | None = None,
    end: datetime | None = None,
    instants: Sequence[datetime] | None = None,
    concurrency: int = DEFAULT_CONCURRENCY,
    priority: int | None = None,
    again: bool = False,
) -> Batch:
    """One run for each time of the range, or for those `instants` of it; times that have a run are left out unless
    they are wanted `again`."""
    faults: dict[str, list[str]] = {}
    check_concurrency(concurrency, faults)
    check_priority(priority, faults)
    refuse(faults)
    # Two who ask at once come one after the other: the second finds the runs of the first.
    job = locked_job(schedule.job)
    times = _wanted(schedule, start, end, instants, again=again, now=now)
    launches = [
        Launch(
            job=job,
            trigger=Trigger.BACKFILL,
            parameters=schedule.parameters,
            scheduled_for=at,
            zone=schedule.timezone,
            batch_key=at.isoformat(),
            apart=True,
            waiting=True,
            priority=default_priority(job.priority) if priority is None else priority,
        )
        for at in times
    ]
    orders, said = orders_of(
        job=job, launches=launches, place=lambda _number, wanted: f"instants.{wanted.batch_key}", by=by, now=now
    )
    refuse(said)
    batch = new_group(
        job=job,
        kind=Batch.Kind.BACKFILL,
        trigger=Trigger.BACKFILL,
        by=by,
        now=now,
        name=schedule.name,
        concurrency=concurrency,
        schedule=schedule,
        graph={"zone": schedule.timezone, "first": times[0].isoformat(), "last": times[-1].isoformat()},
    )
    return start_group(batch=batch, orders=orders, by=by, now=now)


def _wanted(
    schedule: Schedule,
    start: datetime | None,
    end: datetime | None,
    instants: Sequence[datetime] | None,
    *,
    again: bool,
    now: datetime,
) -> list[datetime]:
    if instants is not None:
        if not instants:
            sentence = _("Choose at least one time.")
            raise Invalid(sentence, fields={"instants": [sentence]})
        start, end = start or min(instants), end or max(instants)
    if start is None or end is None:
        sentence = _("Say from when to when.")
        missing = [name for name, value in (("start", start), ("end", end)) if value is None]
        raise Invalid(sentence, fields={name: [sentence] for name in missing})
    found = preview_backfill(schedule=schedule, start=start, end=end, now=now)
    if instants is not None:
        if strange := sorted({*instants} - {each.at for each in found}):
            sentence = _("The schedule has no time at %(at)s.") % {"at": strange[0].isoformat()}
            raise Invalid(sentence, fields={"instants": [sentence]})
        found = [each for each in found if each.at in {*instants}]
    times = [each.at for each in found if again or each.run is None]
    if not times:
        sentence = _("All of these times have a run already. Say so if they are to run again.")
        raise Invalid(sentence, fields={"again": [sentence]})
    return times


def _range_faults(start: datetime, end: datetime, now: datetime) -> dict[str, list[str]]:
    if start.year < FIRST_YEAR:
        return {"start": [_("This is too far away.")]}
    if end < start:
        return {"end": [_("The end lies before the start.")]}
    if end > now:
        return {"end": [_("The end lies in the future: the schedule itself will fire these times.")]}
    return {}
