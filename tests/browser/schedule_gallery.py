"""Schedules in every state, and a ledger in which everything has happened, for screenshots."""

from __future__ import annotations

from datetime import datetime, timedelta

from apps.accounts.models import User
from apps.core.actors import person
from apps.jobs.models import Firing, Job, Outcome, Schedule
from apps.jobs.services import schedules
from apps.runs.states import State, Trigger
from tests.factories import RunFactory

HOUR = timedelta(hours=1)
# What became of the hours behind, the latest first; the states of runs, and outcomes without one.
HOURS: tuple[tuple[str, str, dict[str, object]], ...] = (
    (State.SUCCEEDED, "", {}),
    (State.SUCCEEDED, "", {}),
    (Outcome.SKIPPED, "overlap_skip", {}),
    (State.FAILED, "", {}),
    (State.SUCCEEDED, "", {}),
    (Outcome.SKIPPED, "paused", {"by": "ada", "why": "The site is being rebuilt."}),
    (Outcome.MISSED, "misfire_skip", {}),
    (State.TIMED_OUT, "", {}),
    (Outcome.FAILED, "param_error", {"error": "pages: “{{ tommorow }}” is not known.", "fields": {}}),
    (State.SUCCEEDED, "", {}),
    (Outcome.SKIPPED, "maintenance", {"by": "ada", "why": "New disks."}),
)


def schedule_jobs(ada: User, job: Job, now: datetime) -> Schedule:
    """The first schedule of `job`: of the other jobs one is paused, one off, one fires often."""
    by, others = person(ada), list(Job.objects.exclude(pk=job.pk).order_by("pk"))
    first = schedules.create_schedule(
        job=job, by=by, now=now, type="cron", cron="30 9 * * 1-5", timezone="Asia/Shanghai", name="Every morning"
    )
    hourly = schedules.create_schedule(job=job, by=by, now=now, type="cron", cron="@hourly", timezone="Europe/Berlin")
    paused = schedules.create_schedule(job=others[0], by=by, now=now, type="interval", every="15 min", jitter="2 min")
    schedules.pause_schedule(
        schedule=paused, by=by, now=now, reason="The site asked us to wait.", until=now + timedelta(hours=5)
    )
    off = schedules.create_schedule(job=others[1], by=by, now=now, type="cron", cron="0 3 31 * *", timezone="UTC")
    schedules.set_enabled(schedule=off, by=by, now=now, enabled=False)
    schedules.create_schedule(
        job=others[1], by=by, now=now, type="once", at=now + timedelta(days=3, hours=2), parameters={}
    )
    fill_ledger(hourly, now)
    fill_often(paused, now)
    return first


def fill_ledger(schedule: Schedule, now: datetime) -> None:
    """Two days of an hourly schedule."""
    top = now.replace(minute=0, second=0, microsecond=0)
    for number in range(48):
        what, reason, detail = HOURS[number % len(HOURS)]
        due = top - number * HOUR
        run = None
        if what not in (Outcome.SKIPPED, Outcome.MISSED) and not reason:
            run = RunFactory(
                job=schedule.job,
                state=what,
                trigger=Trigger.SCHEDULE,
                queued_at=due,
                started_at=due + timedelta(seconds=2),
                finished_at=due + timedelta(seconds=40 + 97 * (number % 7)),
                schedule=schedule,
                scheduled_for=due,
            )
        Firing.objects.create(
            job=schedule.job,
            schedule=schedule,
            scheduled_for=due,
            outcome=Outcome.FIRED if run else what,
            reason=reason,
            detail=detail,
            run=run,
            decided_at=due + timedelta(seconds=1 if run else 3700),
        )


def fill_often(schedule: Schedule, now: datetime) -> None:
    """Half a day of a schedule that fires every quarter, and a long time in which nobody fired it."""
    start = now - 12 * HOUR
    Firing.objects.create(
        job=schedule.job,
        schedule=schedule,
        scheduled_for=start - 300 * HOUR,
        until=start,
        times=1200,
        outcome=Outcome.MISSED,
        reason="misfire_skip",
        decided_at=start,
    )
    for number in range(1, 48):
        due = start + number * timedelta(minutes=15)
        run = RunFactory(
            job=schedule.job,
            state=State.SUCCEEDED,
            trigger=Trigger.SCHEDULE,
            queued_at=due,
            started_at=due,
            finished_at=due + timedelta(minutes=3 + number % 5),
            schedule=schedule,
            scheduled_for=due,
        )
        Firing.objects.create(
            job=schedule.job, schedule=schedule, scheduled_for=due, outcome=Outcome.FIRED, run=run, decided_at=due
        )
