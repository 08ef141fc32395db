"""The runs of due times: most of them all together, what needs more care one by one."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import Count, Min

from apps.core.actors import SYSTEM
from apps.core.errors import Invalid, PanelError
from apps.jobs.models import Firing, Job, Outcome, Overlap, Schedule
from apps.jobs.services.batches import jobs_with_followers
from apps.jobs.services.launching import Launch, order_of_launch
from apps.jobs.services.ledger import firing_of
from apps.jobs.services.locking import free_jobs, pools_of
from apps.jobs.services.overlap import earlier_runs, refusal
from apps.jobs.services.running import launch
from apps.runs.models import Run
from apps.runs.services import RunOrder, request_runs
from apps.runs.states import State, Trigger

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A time of a schedule that is to be fired now."""

    schedule: Schedule
    slot: datetime

    def of(self, job: Job) -> Launch:
        return Launch(
            job=job,
            trigger=Trigger.SCHEDULE,
            parameters=self.schedule.parameters,
            schedule_id=self.schedule.pk,
            scheduled_for=self.slot,
            zone=self.schedule.timezone,
        )


@dataclass(slots=True)
class Launched:
    """`firings` are for the ledger; `alone` have to be launched one by one; the job of those `busy` is locked."""

    firings: list[Firing] = field(default_factory=list)
    alone: list[Wanted] = field(default_factory=list)
    busy: list[Wanted] = field(default_factory=list)


@dataclass(slots=True)
class _Ready:
    wanted: Wanted
    job: Job
    order: RunOrder


@dataclass(slots=True)
class _Earlier:
    """What a new run of a job minds."""

    active: int = 0
    first: int | None = None


def launch_together(*, wanted: Sequence[Wanted], now: datetime) -> Launched:
    """In a few statements for all. The caller holds the locks of the schedules."""
    done = Launched()
    jobs = free_jobs(ids={each.schedule.job_id for each in wanted})
    followed = jobs_with_followers(job_ids=jobs.keys()) if jobs else set()
    earlier = _earlier(jobs)
    pools = pools_of(ids=jobs.keys())
    turns: defaultdict[int, list[_Ready]] = defaultdict(list)
    taken: Counter[int] = Counter()
    for each in wanted:
        job = jobs.get(each.schedule.job_id)
        if job is None:
            done.busy.append(each)
            continue
        replaces = job.overlap == Overlap.REPLACE and (earlier[job.pk].active or taken[job.pk])
        if job.pk in followed or replaces:
            done.alone.append(each)
        elif ready := _prepared(each, job, pools[job.pk], now, done):
            # Of two times of one job the second sees the run of the first.
            turns[taken[job.pk]].append(ready)
            taken[job.pk] += 1
    for _turn, several in sorted(turns.items()):
        done.firings += _launched(several, earlier, now)
    return done


def launch_alone(*, wanted: Wanted, now: datetime) -> Firing | None:
    """As by a person's hand; None while the job is locked."""
    job = free_jobs(ids=[wanted.schedule.job_id]).get(wanted.schedule.job_id)
    if job is None:
        return None
    try:
        with transaction.atomic():
            run, _new = launch(wanted=wanted.of(job), by=SYSTEM, now=now)
    except PanelError as error:
        return _refused(wanted, error, now)
    return _fired(wanted, run, now)


def _earlier(jobs: Collection[int]) -> defaultdict[int, _Earlier]:
    rows = earlier_runs(jobs).values_list("job").annotate(active=Count("pk"), first=Min("pk")) if jobs else ()
    return defaultdict(_Earlier, {pk: _Earlier(active, first) for pk, active, first in rows})


def _prepared(wanted: Wanted, job: Job, pools: Sequence[int], now: datetime, done: Launched) -> _Ready | None:
    try:
        order, ready = order_of_launch(job=job, wanted=wanted.of(job), by=SYSTEM, now=now, pools=pools)
    except PanelError as error:
        done.firings.append(_refused(wanted, error, now))
    except DatabaseError:
        raise
    except Exception:
        logger.exception("schedule %d could not be prepared together with others", wanted.schedule.pk)
        done.alone.append(wanted)
    else:
        if ready:
            return _Ready(wanted, job, order)
        done.alone.append(wanted)
    return None


def _launched(several: Sequence[_Ready], earlier: defaultdict[int, _Earlier], now: datetime) -> list[Firing]:
    """The runs of different jobs."""
    skipped: dict[int, dict[str, Any]] = {}
    for position, each in enumerate(several):
        known = earlier[each.job.pk]
        detail = refusal(each.job, active=known.active, first=known.first)
        if detail is not None:
            skipped[position] = detail
    runs = request_runs(orders=[each.order for each in several], by=SYSTEM, now=now, skipped=skipped)
    for each, run in zip(several, runs, strict=True):
        if run.state != State.SKIPPED:
            known = earlier[each.job.pk]
            known.active, known.first = known.active + 1, known.first or run.pk
    return [_fired(each.wanted, run, now) for each, run in zip(several, runs, strict=True)]


def _fired(wanted: Wanted, run: Run, now: datetime) -> Firing:
    if run.state == State.SKIPPED:
        known = {"reason": run.reason, "detail": run.detail, "run_id": run.pk}
        return firing_of(wanted.schedule, wanted.slot, now, Outcome.SKIPPED, **known)
    return firing_of(wanted.schedule, wanted.slot, now, Outcome.FIRED, run_id=run.pk)


def _refused(wanted: Wanted, error: PanelError, now: datetime) -> Firing:
    """The job as it is now cannot be run: its parameters do not fit, or there is nothing to run."""
    detail: dict[str, Any] = {"error": error.message}
    reason = error.code
    if isinstance(error, Invalid):
        reason, detail["fields"] = "param_error", error.fields
    return firing_of(wanted.schedule, wanted.slot, now, Outcome.FAILED, reason, detail=detail)
