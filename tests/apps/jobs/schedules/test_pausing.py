"""Pauses, and the switch of all scheduling."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

from apps.core.actors import Actor
from apps.core.errors import Invalid
from apps.jobs.models import Clock, Schedule
from apps.jobs.selectors import clock, is_paused
from apps.jobs.services.schedules import pause_schedule, resume_schedule, scheduling_off, scheduling_on
from tests.apps.jobs.schedules.conftest import Make

pytestmark = pytest.mark.django_db

NOON = datetime(2031, 5, 6, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_a_pause_says_since_when_by_whom_and_why(make: Make, by: Actor) -> None:
    paused = pause_schedule(schedule=make(), by=by, now=NOON, reason=" the site moves ", until=NOON + HOUR)
    paused.refresh_from_db()

    assert (paused.paused_at, paused.paused_until, paused.paused_why, paused.paused_by) == (
        NOON, NOON + HOUR, "the site moves", str(by),
    )  # fmt: skip


def test_a_pause_leaves_the_times_as_they_are(make: Make, by: Actor) -> None:
    made = make()
    assert pause_schedule(schedule=made, by=by, now=NOON, reason="x").next_slot_at == made.next_slot_at


def test_a_pause_ends_by_itself(make: Make, by: Actor) -> None:
    paused = pause_schedule(schedule=make(), by=by, now=NOON, reason="x", until=NOON + HOUR)

    assert [is_paused(paused, NOON + n * HOUR) for n in (-1, 0, 0.99, 1, 2)] == [False, True, True, False, False]


def test_a_pause_without_an_end_goes_on(make: Make, by: Actor) -> None:
    paused = pause_schedule(schedule=make(), by=by, now=NOON, reason="x")

    assert is_paused(paused, NOON + timedelta(days=1000))


def test_said_again_a_pause_keeps_its_beginning(make: Make, by: Actor) -> None:
    pause_schedule(schedule=make(), by=by, now=NOON, reason="x")
    paused = pause_schedule(schedule=Schedule.objects.get(), by=by, now=NOON + HOUR, reason="y", until=NOON + 9 * HOUR)

    assert (paused.paused_at, paused.paused_why, paused.paused_until) == (NOON, "y", NOON + 9 * HOUR)


def test_after_a_pause_that_has_passed_a_new_one_begins(make: Make, by: Actor) -> None:
    pause_schedule(schedule=make(), by=by, now=NOON, reason="x", until=NOON + HOUR)
    paused = pause_schedule(schedule=Schedule.objects.get(), by=by, now=NOON + 2 * HOUR, reason="y")

    assert paused.paused_at == NOON + 2 * HOUR


def test_resumed_it_is_as_before_and_twice_is_once(make: Make, by: Actor) -> None:
    made = make()
    pause_schedule(schedule=made, by=by, now=NOON, reason="x")
    for _turn in range(2):
        resumed = resume_schedule(schedule=made, by=by, now=NOON + HOUR)

    assert not is_paused(resumed, NOON + HOUR)
    assert resumed.paused_until == NOON + HOUR
    assert LogEntry.objects.filter(change_message="resumed").count() == 1


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"reason": " "}, "reason"),
        ({"reason": "x" * 201}, "reason"),
        ({"reason": "a\nb"}, "reason"),
        ({"reason": None}, "reason"),
        ({"reason": "x", "until": NOON}, "until"),
        ({"reason": "x", "until": datetime(2032, 1, 1)}, "until"),  # noqa: DTZ001
    ],
    ids=str,
)
def test_a_pause_without_a_reason_or_with_an_end_that_has_passed_is_refused(
    make: Make, by: Actor, values: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        pause_schedule(schedule=make(), by=by, now=NOON, **values)

    assert set(refusal.value.fields) == {field}


def test_all_scheduling_is_switched_off_with_a_reason_and_on_again(by: Actor) -> None:
    assert clock().off_since is None
    scheduling_off(by=by, now=NOON, why="database moves")
    scheduling_off(by=by, now=NOON + HOUR, why="it takes longer")
    assert (clock().off_since, clock().off_why, clock().off_by) == (NOON, "it takes longer", str(by))

    for _turn in range(2):
        scheduling_on(by=by, now=NOON + 2 * HOUR)
    assert (clock().off_since, clock().off_why) == (None, "")
    assert [entry.change_message for entry in LogEntry.objects.order_by("pk")] == [
        "scheduling_off: database moves", "scheduling_off: it takes longer", "scheduling_on",
    ]  # fmt: skip


def test_it_is_not_switched_off_without_a_reason(by: Actor) -> None:
    with pytest.raises(Invalid) as refusal:
        scheduling_off(by=by, now=NOON, why="")

    assert set(refusal.value.fields) == {"why"}
    assert not Clock.objects.exists()
