"""Why did it not run? For any job and time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import translation

from apps.core.actors import Actor
from apps.jobs import reasons
from apps.jobs.models import Firing, Job, Outcome, Schedule
from apps.jobs.selectors import answers_for, why_not_fired
from apps.jobs.services.schedules import pause_schedule, scheduling_off, set_enabled, update_schedule
from tests.apps.jobs.schedules.conftest import Make
from tests.factories import JobFactory

pytestmark = pytest.mark.django_db

NOON = datetime(2031, 5, 6, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
THREE = datetime(2031, 5, 7, 3, tzinfo=UTC)


def noted_at(message: str, at: datetime) -> None:
    """The log of changes has the time of its writing, and these stories play later."""
    LogEntry.objects.filter(change_message=message).update(action_time=at)


def fired(schedule: Schedule, at: datetime, outcome: str = Outcome.FIRED, **values: Any) -> Firing:
    return Firing.objects.create(
        **{
            "job": schedule.job,
            "schedule": schedule,
            "scheduled_for": at,
            "outcome": outcome,
            "decided_at": at,
            **values,
        }
    )


def test_the_ledger_answers_where_it_knows(make: Make, job: Job) -> None:
    made = make(now=NOON)
    row = fired(made, THREE, Outcome.SKIPPED, reason="paused", detail={"by": "ann", "why": "the site moves"})

    (answer,) = answers_for(job, THREE + timedelta(seconds=59), now=NOON + DAY)

    assert answer.firing == row
    assert answer.sentence == "The schedule was paused by ann: the site moves"


def test_a_row_for_many_times_answers_for_each_of_them(make: Make, job: Job) -> None:
    made = make(now=NOON)
    row = fired(made, THREE, Outcome.MISSED, reason="misfire_skip", until=THREE + 900 * DAY, times=901)

    assert answers_for(job, THREE + 450 * DAY, now=THREE + 901 * DAY)[0].firing == row


def test_what_is_left_of_a_deleted_schedule_answers_too(make: Make, job: Job) -> None:
    fired(make(now=NOON), THREE)
    Schedule.objects.all().delete()

    assert [answer.schedule for answer in answers_for(job, THREE, now=NOON + DAY)] == [None]


def test_a_job_without_schedules_says_so(job: Job) -> None:
    assert why_not_fired(job, NOON, now=NOON) == "This job has no schedule: it runs only when somebody starts it."


def test_a_time_that_the_rule_does_not_have(make: Make, job: Job) -> None:
    make(now=NOON, cron="0 3 * * *", timezone="Europe/Berlin")

    assert why_not_fired(job, THREE, now=NOON + DAY) == (
        "By its rule (every day at 03:00) it is not due at that time. "
        "The next time after it is 2031-05-08 03:00 Europe/Berlin."
    )


def test_a_time_before_the_first_and_after_the_last_day(make: Make, job: Job) -> None:
    make(now=NOON, start_at=NOON + 5 * DAY, end_at=NOON + 9 * DAY)

    assert "begins only on 2031-05-11 12:00" in why_not_fired(job, THREE, now=NOON + 20 * DAY)
    assert "has ended on 2031-05-15 12:00" in why_not_fired(job, THREE + 10 * DAY, now=NOON + 20 * DAY)


def test_a_time_that_is_still_to_come(make: Make, job: Job, by: Actor) -> None:
    made = make(now=NOON)
    assert why_not_fired(job, THREE, now=NOON) == "It is still to come: 2031-05-07 03:00 UTC."

    pause_schedule(schedule=made, by=by, now=NOON, reason="x", until=NOON + DAY)
    assert "will be skipped" in why_not_fired(job, THREE, now=NOON)
    assert "still to come: " in why_not_fired(job, THREE + DAY, now=NOON)

    scheduling_off(by=by, now=NOON, why="x")
    assert "unless scheduling is switched on" in why_not_fired(job, THREE + DAY, now=NOON)

    set_enabled(schedule=made, by=by, now=NOON, enabled=False)
    assert why_not_fired(job, THREE, now=NOON) == "It is switched off."


def test_a_time_before_the_schedule_was_made(make: Make, job: Job) -> None:
    make(now=NOON)

    assert "was not there yet" in why_not_fired(job, THREE - DAY, now=NOON + DAY)


def test_a_time_while_it_was_switched_off(make: Make, job: Job, by: Actor) -> None:
    made = make(now=NOON)
    set_enabled(schedule=made, by=by, now=NOON + HOUR, enabled=False)
    noted_at("disabled", NOON + HOUR)
    set_enabled(schedule=made, by=by, now=NOON + 2 * DAY, enabled=True)
    noted_at("enabled", NOON + 2 * DAY)

    assert why_not_fired(job, THREE, now=NOON + 3 * DAY) == (
        f"It was switched off by {by.name} on 2031-05-06 13:00 UTC."
    )


def test_a_time_whose_rule_was_changed_later(make: Make, job: Job, by: Actor) -> None:
    made = make(now=NOON, cron="0 4 * * *")
    update_schedule(schedule=made, by=by, now=NOON + 2 * DAY, cron="0 3 * * *")
    noted_at("changed: cron", NOON + 2 * DAY)

    assert f"{by.name} changed the schedule on 2031-05-08 12:00 UTC" in why_not_fired(job, THREE, now=NOON + 3 * DAY)


def test_a_later_change_of_something_else_explains_nothing(make: Make, job: Job, by: Actor) -> None:
    made = make(now=NOON)
    update_schedule(schedule=made, by=by, now=NOON + HOUR, name="nightly")
    noted_at("changed: name", NOON + 2 * DAY)

    assert "late by" in why_not_fired(job, THREE, now=NOON + 3 * DAY)


def test_a_time_that_nobody_has_come_by(make: Make, job: Job) -> None:
    make(now=NOON)

    assert why_not_fired(job, THREE, now=THREE + timedelta(seconds=1)) == "It is due and starts in a moment."
    assert "late by 3 hours" in why_not_fired(job, THREE, now=THREE + 3 * HOUR)


def test_a_time_that_waits_for_its_jitter(make: Make, job: Job) -> None:
    made = make(now=NOON, jitter=3600)
    assert made.next_fire_at is not None
    assert made.next_fire_at > THREE + timedelta(seconds=2)

    assert "its jitter lets it start" in why_not_fired(job, THREE, now=THREE + timedelta(seconds=1))


def test_a_schedule_in_trouble(make: Make, job: Job) -> None:
    Schedule.objects.filter(pk=make().pk).update(trouble="“Mars” is no time zone.", timezone="Mars")

    assert why_not_fired(job, NOON, now=NOON) == "It cannot fire: “Mars” is no time zone."


def test_each_schedule_answers_for_itself_by_its_name(make: Make, job: Job) -> None:
    fired(make(now=NOON, name="nightly"), THREE)
    make(now=NOON, cron="0 4 * * *")

    text = why_not_fired(job, THREE, now=NOON + DAY)

    assert text.splitlines()[0] == "Schedule “nightly”: A run was started."
    assert text.splitlines()[1].startswith("every day at 04:00: By its rule")


def test_of_other_jobs_nothing_is_said(make: Make) -> None:
    fired(make(now=NOON), THREE)

    assert answers_for(JobFactory(), THREE, now=NOON)[0].schedule is None


def test_every_second_of_a_minute_has_its_row(make: Make, job: Job) -> None:
    made = make(now=NOON, type="interval", every=1)
    for second in range(120):
        fired(made, THREE + timedelta(seconds=second))

    assert [
        answer.firing.scheduled_for.second for answer in answers_for(job, THREE, now=NOON + DAY) if answer.firing
    ] == [*range(60)]


# -- the sentences ------------------------------------------------------------------------------------------------

ROWS: list[tuple[dict[str, Any], str]] = [
    ({}, "A run was started."),
    ({"decided_at": THREE + HOUR}, "A run was started, 1 hour after the time."),
    ({"outcome": "missed", "reason": "misfire_skip", "decided_at": THREE + HOUR}, "1 hour"),
    ({"outcome": "missed", "reason": "misfire_skip", "times": 7, "until": THREE + DAY}, "7 times"),
    ({"outcome": "missed", "reason": "schedule_changed"}, "when the schedule was changed"),
    ({"outcome": "skipped", "reason": "paused"}, "The schedule was paused."),
    ({"outcome": "skipped", "reason": "maintenance", "detail": {"by": "ann", "why": "disk"}}, "ann: disk"),
    ({"outcome": "skipped", "reason": "scheduling_off", "detail": {"by": "ann", "why": "disk"}}, "ann: disk"),
    ({"outcome": "skipped", "reason": "overlap_skip", "detail": {"run": 5}}, "run 5"),
    (
        {"outcome": "failed", "reason": "param_error", "detail": {"error": "No.", "fields": {"a": ["Bad."]}}},
        "No. a: Bad.",
    ),
    ({"outcome": "failed", "reason": "param_error", "detail": {}}, "could not be made"),
    ({"outcome": "failed", "reason": "no_version", "detail": {"error": "No version."}}, "No version."),
    ({"outcome": "failed", "reason": "internal_error", "detail": []}, "No run could be made."),
    ({"outcome": "skipped", "reason": "something_new"}, "something_new"),
]


@pytest.mark.parametrize(("values", "words"), ROWS, ids=[str(values) for values, _words in ROWS])
def test_every_row_of_the_ledger_has_a_sentence(values: dict[str, Any], words: str) -> None:
    due = Firing(**{"scheduled_for": THREE, "decided_at": THREE, "outcome": "fired", **values})

    assert words in reasons.sentence(due)
    with translation.override("zh-hans"):
        assert reasons.sentence(due)
