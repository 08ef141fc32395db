"""Runs for times of a schedule that lie back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.core.actors import Actor, person
from apps.core.errors import Invalid
from apps.jobs.models import Job, Schedule
from apps.jobs.services import Launch, launch
from apps.jobs.services.groups import preview_backfill, start_backfill
from apps.runs.models import Batch, Run
from apps.runs.states import State, Trigger
from tests.apps.jobs.groups.grouped import end, runs_of, schedule_of, searching, states_of
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
FIRST = datetime(2026, 11, 20, 0, 5, tzinfo=UTC)
LAST = datetime(2026, 11, 24, 0, 5, tzinfo=UTC)


def day(number: int) -> datetime:
    return datetime(2026, 11, number, 0, 5, tzinfo=UTC)


@pytest.fixture
def by(db: None) -> Actor:
    return person(UserFactory(username="ann"))


@pytest.fixture
def job(db: None) -> Job:
    return searching()


@pytest.fixture
def schedule(job: Job) -> Schedule:
    return schedule_of(job, parameters={"pages": 9}, name="nightly")


def fire(schedule: Schedule, at: datetime, by: Actor, state: State = State.SUCCEEDED) -> Run:
    """As the clock would have done."""
    wanted = Launch(job=schedule.job, trigger=Trigger.SCHEDULE, schedule_id=schedule.pk, scheduled_for=at)
    run, _new = launch(wanted=wanted, by=by, now=at)
    end([run], state)
    return run


def refused(schedule: Schedule, by: Actor, **range_: Any) -> dict[str, list[str]]:
    with pytest.raises(Invalid) as excinfo:
        start_backfill(schedule=schedule, by=by, now=NOW, **range_)
    assert not Batch.objects.exists()
    return excinfo.value.fields


def test_the_preview_gives_the_times_of_the_rule_with_both_ends(schedule: Schedule) -> None:
    found = preview_backfill(schedule=schedule, start=FIRST, end=LAST, now=NOW)

    assert [each.at for each in found] == [day(number) for number in range(20, 25)]
    assert {each.run for each in found} == {None}


def test_a_time_that_has_a_run_is_shown_with_it(schedule: Schedule, by: Actor) -> None:
    fired = fire(schedule, day(21), by, State.FAILED)
    fire(schedule, day(22), by, State.SKIPPED)

    found = preview_backfill(schedule=schedule, start=FIRST, end=LAST, now=NOW)

    assert [each.run for each in found] == [None, fired, None, None, None]


def test_each_time_becomes_a_run_that_stands_for_it(job: Job, schedule: Schedule, by: Actor) -> None:
    batch = start_backfill(schedule=schedule, by=by, now=NOW, start=FIRST, end=LAST, concurrency=2)

    runs = runs_of(batch)
    assert [run.scheduled_for for run in runs] == [day(number) for number in range(20, 25)]
    assert runs[0].batch_key == "2026-11-20T00:05:00+00:00"
    assert {(run.trigger, run.schedule_id, run.apart, run.priority) for run in runs} == {("backfill", None, True, 7)}
    assert runs[0].spec["parameters"] == {"keyword": "sea", "pages": 9}
    assert states_of(batch) == ["queued"] * 2 + ["waiting"] * 3
    assert (batch.kind, batch.schedule, batch.name) == ("backfill", schedule, "nightly")


@pytest.mark.parametrize(("own", "priority", "given"), [(1, 7, None), (6, 8, None), (9, 9, None), (5, 3, 3)])
def test_a_backfill_is_less_urgent_than_the_job(
    job: Job, schedule: Schedule, by: Actor, own: int, priority: int, given: int | None
) -> None:
    job.priority = own
    job.save()

    batch = start_backfill(schedule=schedule, by=by, now=NOW, start=FIRST, end=LAST, priority=given)

    assert {run.priority for run in runs_of(batch)} == {priority}


def test_times_that_have_run_are_left_out_unless_asked_for(schedule: Schedule, by: Actor) -> None:
    fire(schedule, day(21), by)

    batch = start_backfill(schedule=schedule, by=by, now=NOW, start=FIRST, end=LAST)
    all_again = start_backfill(schedule=schedule, by=by, now=NOW, start=FIRST, end=LAST, again=True)

    assert [run.scheduled_for for run in runs_of(batch)] == [day(20), day(22), day(23), day(24)]
    assert len(runs_of(all_again)) == 5


def test_a_second_backfill_takes_only_what_the_first_has_left(schedule: Schedule, by: Actor) -> None:
    first = start_backfill(schedule=schedule, by=by, now=NOW, start=FIRST, end=day(22))
    second = start_backfill(schedule=schedule, by=by, now=NOW, start=FIRST, end=LAST)

    assert [run.scheduled_for for run in runs_of(first)] == [day(20), day(21), day(22)]
    assert [run.scheduled_for for run in runs_of(second)] == [day(23), day(24)]


def test_backfills_of_one_schedule_have_places_of_their_own(schedule: Schedule, by: Actor) -> None:
    first = start_backfill(schedule=schedule, by=by, now=NOW, start=FIRST, end=LAST, concurrency=1)
    second = start_backfill(schedule=schedule, by=by, now=NOW, start=FIRST, end=LAST, concurrency=2, again=True)

    assert states_of(first).count("queued") == 1
    assert states_of(second).count("queued") == 2


def test_another_schedule_of_the_job_has_its_own_past(job: Job, schedule: Schedule, by: Actor) -> None:
    start_backfill(schedule=schedule, by=by, now=NOW, start=FIRST, end=LAST)
    other = schedule_of(job)

    assert {each.run for each in preview_backfill(schedule=other, start=FIRST, end=LAST, now=NOW)} == {None}


def test_chosen_times_only(schedule: Schedule, by: Actor) -> None:
    batch = start_backfill(schedule=schedule, by=by, now=NOW, instants=[day(24), day(20)])

    assert [run.scheduled_for for run in runs_of(batch)] == [day(20), day(24)]


def test_the_schedule_fires_on_beside_a_backfill(job: Job, schedule: Schedule, by: Actor) -> None:
    batch = start_backfill(schedule=schedule, by=by, now=NOW, start=FIRST, end=LAST)

    fired = fire(schedule, day(30), by, State.RUNNING)

    assert states_of(batch).count("queued") == 2
    fired.refresh_from_db()
    assert fired.state == State.RUNNING


@pytest.mark.parametrize(
    ("range_", "at"),
    [
        ({"start": LAST, "end": FIRST}, "end"),
        ({"start": FIRST, "end": NOW + timedelta(minutes=1)}, "end"),
        ({"start": day(20) + timedelta(minutes=1), "end": day(21) - timedelta(minutes=1)}, "end"),
        ({"start": FIRST}, "end"),
        ({"end": LAST}, "start"),
        ({}, "start"),
        ({"instants": []}, "instants"),
        ({"instants": [day(20), day(20) + timedelta(hours=1)]}, "instants"),
        ({"instants": [day(30) + timedelta(days=1)]}, "end"),
        ({"start": FIRST, "end": LAST, "concurrency": 0}, "concurrency"),
        ({"start": FIRST, "end": LAST, "priority": 10}, "priority"),
        ({"start": FIRST, "end": LAST, "priority": False}, "priority"),
    ],
)
def test_a_range_that_cannot_be_is_refused_at_its_field(
    schedule: Schedule, by: Actor, range_: dict[str, Any], at: str
) -> None:
    assert at in refused(schedule, by, **range_)


def test_more_than_a_thousand_times_are_refused(job: Job, by: Actor) -> None:
    minutely = schedule_of(job, expression="* * * * *")
    start = NOW - timedelta(minutes=1000)

    assert "end" in refused(minutely, by, start=start, end=NOW)
    assert len(preview_backfill(schedule=minutely, start=start + timedelta(minutes=1), end=NOW, now=NOW)) == 1000


def test_a_parameter_that_does_not_fit_names_the_first_time(schedule: Schedule, by: Actor) -> None:
    schedule.parameters = {"pages": 0}

    said = refused(schedule, by, start=FIRST, end=LAST)

    assert "instants.2026-11-20T00:05:00+00:00.pages" in said


def test_a_change_night_has_the_times_the_clock_would_have_fired(job: Job) -> None:
    berlin = schedule_of(job, expression="30 2 * * *", timezone="Europe/Berlin")
    start, end_ = datetime(2026, 10, 24, tzinfo=UTC), datetime(2026, 10, 27, tzinfo=UTC)

    found = preview_backfill(schedule=berlin, start=start, end=end_, now=NOW)

    assert [each.at.isoformat() for each in found] == [
        "2026-10-24T00:30:00+00:00",
        "2026-10-25T00:30:00+00:00",
        "2026-10-26T01:30:00+00:00",
    ]


def test_dates_in_templates_are_of_the_time_and_not_of_now(job: Job, by: Actor) -> None:
    tokyo = schedule_of(job, expression="5 0 * * *", timezone="Asia/Tokyo", parameters={"day": "{{ yesterday }}"})
    start = datetime(2026, 11, 20, 15, tzinfo=UTC)

    batch = start_backfill(schedule=tokyo, by=by, now=NOW, start=start, end=start + timedelta(days=2))

    assert [run.spec["parameters"]["day"] for run in runs_of(batch)] == ["2026-11-20", "2026-11-21"]
