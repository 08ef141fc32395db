"""Due times that come in time and make no run all the same: the ledger says why."""

from __future__ import annotations

from typing import Any

import pytest

from apps.jobs.models import Clock, Firing, Job, Schedule
from apps.jobs.services.firing.passes import BROKEN
from apps.jobs.services.schedules import pause_schedule, resume_schedule, scheduling_off, scheduling_on
from apps.runs.models import Placement, Run
from tests.apps.jobs.firing.timed import MINUTE, NOON, TESTER, ledger, schedule, ticks
from tests.factories import BareSpiderFactory, JobFactory

pytestmark = pytest.mark.django_db

NEEDS_URL = {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}


def detail(of: Schedule) -> dict[str, Any]:
    found: dict[str, Any] = Firing.objects.filter(schedule=of).latest("scheduled_for").detail
    return found


def test_a_paused_schedule_keeps_its_times_in_the_ledger() -> None:
    own = schedule()
    pause_schedule(schedule=own, by=TESTER, now=NOON + MINUTE / 2, reason="site is down")
    ticks(NOON + MINUTE)
    assert (ledger(own), detail(own)) == (
        [("12:01", "skipped", "paused")],
        {"by": "tester", "why": "site is down"},
    )
    resume_schedule(schedule=own, by=TESTER, now=NOON + 1.5 * MINUTE)
    ticks(NOON + 2 * MINUTE)
    assert ledger(own)[1:] == [("12:02", "fired", "")]
    assert Run.objects.count() == 1


def test_a_pause_ends_by_itself() -> None:
    own = schedule()
    pause_schedule(schedule=own, by=TESTER, now=NOON + MINUTE / 2, reason="closed", until=NOON + 2 * MINUTE)
    for number in (1, 2, 3):
        ticks(NOON + number * MINUTE)
    assert [outcome for _time, outcome, _reason in ledger(own)] == ["skipped", "fired", "fired"]


def test_a_time_that_fell_into_a_pause_is_not_made_up_for_after_it() -> None:
    own = schedule(cron="2 12 * * *")
    pause_schedule(schedule=own, by=TESTER, now=NOON + MINUTE / 2, reason="closed", until=NOON + 3 * MINUTE)
    ticks(NOON + 6 * MINUTE)
    assert ledger(own) == [("12:02", "skipped", "paused")]


@pytest.mark.parametrize("how", ["resumed", "switched on"])
def test_what_fell_into_a_pause_stays_skipped_although_no_clock_came_by(how: str) -> None:
    """Every beat was down from before the pause until after it; the grace would allow to make up for the time."""
    own = schedule(cron="2 12 * * *")
    if how == "resumed":
        pause_schedule(schedule=own, by=TESTER, now=NOON + MINUTE, reason="closed")
        resume_schedule(schedule=own, by=TESTER, now=NOON + 3 * MINUTE)
    else:
        scheduling_off(by=TESTER, now=NOON + MINUTE, why="closed")
        scheduling_on(by=TESTER, now=NOON + 3 * MINUTE)
    ticks(NOON + 4 * MINUTE)
    assert ledger(own) == [("12:02", "skipped", "paused" if how == "resumed" else "scheduling_off")]
    assert detail(own) == {"by": "tester", "why": "closed"}


def test_what_was_due_before_a_pause_is_made_up_for_after_it() -> None:
    own = schedule(cron="2 12 * * *")
    for number in (3, 5):
        scheduling_off(by=TESTER, now=NOON + number * MINUTE, why="closed")
        scheduling_on(by=TESTER, now=NOON + (number + 1) * MINUTE)
    ticks(NOON + 7 * MINUTE)
    assert ledger(own) == [("12:02", "fired", "")]


def test_while_all_scheduling_is_off_nothing_is_fired() -> None:
    own = schedule()
    scheduling_off(by=TESTER, now=NOON + MINUTE / 2, why="moving house")
    ticks(NOON + MINUTE)
    assert ledger(own) == [("12:01", "skipped", "scheduling_off")]
    assert detail(own) == {"by": "tester", "why": "moving house"}
    scheduling_on(by=TESTER, now=NOON + 1.5 * MINUTE)
    ticks(NOON + 2 * MINUTE)
    assert ledger(own)[1:] == [("12:02", "fired", "")]
    assert Clock.objects.get().off_since is None


def test_maintenance_keeps_times_from_being_fired() -> None:
    Placement.objects.update_or_create(
        pk=1, defaults={"maintenance_since": NOON, "maintenance_by": "anna", "maintenance_why": "new disks"}
    )
    own = schedule()
    ticks(NOON + MINUTE)
    assert (ledger(own), detail(own)) == (
        [("12:01", "skipped", "maintenance")],
        {"by": "anna", "why": "new disks"},
    )


def test_an_overlap_is_a_skipped_run_and_the_ledger_names_it() -> None:
    own = schedule(overlap="skip")
    ticks(NOON + MINUTE)
    ticks(NOON + 2 * MINUTE)
    first, second = Run.objects.order_by("pk")
    assert ledger(own) == [("12:01", "fired", ""), ("12:02", "skipped", "overlap_skip")]
    assert (second.state, second.detail) == ("skipped", {"run": first.pk})
    assert [(e.from_state, e.to_state) for e in second.events.order_by("pk")] == [
        ("", "queued"),
        ("queued", "skipped"),
    ]
    assert Firing.objects.filter(run=second).exists()


def test_of_two_schedules_of_one_job_at_one_time_the_second_minds_the_first() -> None:
    job = JobFactory(overlap="skip")
    one, two = schedule(job=job), schedule(job=job)
    ticks(NOON + MINUTE)
    assert (ledger(one), ledger(two)) == ([("12:01", "fired", "")], [("12:01", "skipped", "overlap_skip")])


def test_a_run_may_take_the_place_of_the_earlier_one() -> None:
    own = schedule(overlap="replace")
    ticks(NOON + MINUTE)
    ticks(NOON + 2 * MINUTE)
    assert [run.state for run in Run.objects.order_by("pk")] == ["canceled", "queued"]
    assert [outcome for _time, outcome, _reason in ledger(own)] == ["fired", "fired"]


def test_parameters_that_do_not_fit_any_more_are_said_in_the_ledger_and_others_go_on() -> None:
    own = schedule(spider={"version__parameter_schema": NEEDS_URL}, given={"url": "https://a.example/"})
    other = schedule()
    Job.objects.filter(pk=own.job_id).update(parameters={})
    ticks(NOON + MINUTE)
    assert ledger(own) == [("12:01", "failed", "param_error")]
    assert "parameters.url" in detail(own)["fields"]
    assert detail(own)["error"]
    assert ledger(other) == [("12:01", "fired", "")]


def test_a_spider_that_has_lost_its_version_is_said_in_the_ledger() -> None:
    own = schedule()
    Job.objects.filter(pk=own.job_id).update(spider=BareSpiderFactory())
    ticks(NOON + MINUTE)
    assert ledger(own) == [("12:01", "failed", "no_version")]
    assert BROKEN not in {reason for _time, _outcome, reason in ledger(own)}
