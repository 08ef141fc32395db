"""What becomes of due times that nobody could fire in time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from apps.jobs.models import Firing
from apps.jobs.selectors.lateness import schedules_late
from apps.jobs.services.firing import Keeper, look
from apps.jobs.signals import times_missed
from apps.runs.models import Run
from tests.apps.jobs.firing.timed import HOUR, MINUTE, NOON, ledger, schedule, ticks

pytestmark = pytest.mark.django_db

SECOND = timedelta(seconds=1)


def outcomes(rows: list[tuple[str, str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for time, outcome, _reason in rows:
        found.setdefault(outcome, []).append(time)
    return found


def test_a_due_time_makes_one_run_that_stands_for_it() -> None:
    every_minute = schedule()
    ticks(NOON + MINUTE)
    ticks(NOON + MINUTE)
    run = Run.objects.get()
    assert (run.trigger, run.schedule, run.scheduled_for) == ("schedule", every_minute, NOON + MINUTE)
    assert ledger(every_minute) == [("12:01", "fired", "")]
    assert Firing.objects.get().run == run


def test_nothing_is_fired_before_its_time() -> None:
    every_minute = schedule()
    ticks(NOON + MINUTE - SECOND)
    assert ledger(every_minute) == []


def test_parameters_of_the_schedule_are_laid_over_those_of_the_job() -> None:
    pages = {"type": "object", "properties": {"pages": {"type": "integer"}, "deep": {"type": "boolean"}}}
    own = schedule(
        spider={"version__parameter_schema": pages}, given={"pages": 1, "deep": True}, parameters={"pages": 7}
    )
    ticks(NOON + MINUTE)
    assert Run.objects.get(schedule=own).spec["parameters"] == {"pages": 7, "deep": True}


@pytest.mark.parametrize("seconds", [0, 30, 60])
@pytest.mark.parametrize("policy", ["once", "all", "skip"])
def test_up_to_a_minute_late_is_on_time(policy: str, seconds: int) -> None:
    hourly = schedule(cron="0 * * * *", misfire={"policy": policy})
    ticks(NOON + HOUR + seconds * SECOND)
    assert ledger(hourly) == [("13:00", "fired", "")]


DOWN = NOON + 3 * HOUR + 5 * MINUTE


@pytest.mark.parametrize(
    ("cron", "misfire", "fired"),
    [
        ("0 * * * *", {"policy": "once"}, ["15:00"]),
        ("0 * * * *", {"policy": "once", "grace": 240}, []),
        ("30 * * * *", {"policy": "once"}, []),
        ("30 * * * *", {"policy": "once", "grace": "1h"}, ["14:30"]),
        ("0 * * * *", {"policy": "skip"}, []),
        ("0 * * * *", {"policy": "all"}, ["13:00", "14:00", "15:00"]),
        ("0 * * * *", {"policy": "all", "cap": 2}, ["14:00", "15:00"]),
        ("*/5 * * * *", {"policy": "all", "cap": 3}, ["14:50", "14:55", "15:00", "15:05"]),
        ("*/5 * * * *", {"policy": "skip"}, ["15:05"]),
        ("*/5 * * * *", {"policy": "once"}, ["15:00", "15:05"]),
    ],
)
def test_three_hours_without_a_clock(cron: str, misfire: dict[str, Any], fired: list[str]) -> None:
    """The time of 15:05 is on time; of what is late the policy decides. Each time stands in the ledger once."""
    own = schedule(cron=cron, misfire=misfire)
    ticks(DOWN)
    rows = ledger(own)
    assert outcomes(rows).get("fired", []) == fired
    assert {reason for _time, outcome, reason in rows if outcome == "missed"} <= {"misfire_skip"}
    times = [time for time, *_rest in rows]
    assert len(times) == len({*times}) == (37 if cron.startswith("*/5") else 3)
    assert own.runs.count() == len(fired)
    own.refresh_from_db()
    assert own.next_slot_at is not None
    assert own.next_slot_at > DOWN


def test_those_that_are_made_up_for_keep_their_distance() -> None:
    hourly = schedule(cron="0 * * * *", misfire={"policy": "all", "spacing": 300})
    ticks(DOWN)
    assert outcomes(ledger(hourly)) == {"fired": ["13:00"]}
    ticks(DOWN + 299 * SECOND)
    assert len(ledger(hourly)) == 1
    ticks(DOWN + 300 * SECOND)
    ticks(DOWN + 600 * SECOND)
    ticks(DOWN + 700 * SECOND)
    assert outcomes(ledger(hourly)) == {"fired": ["13:00", "14:00", "15:00"]}


def test_a_single_date_is_made_up_for_within_its_grace() -> None:
    early, late = schedule(at=NOON + HOUR), schedule(at=NOON + HOUR, misfire={"grace": 30})
    ticks(NOON + HOUR + 5 * MINUTE)
    assert (ledger(early), ledger(late)) == ([("13:00", "fired", "")], [("13:00", "missed", "misfire_skip")])
    early.refresh_from_db()
    assert (early.next_slot_at, early.next_fire_at) == (None, None)


def test_more_than_a_thousand_missed_times_share_a_row() -> None:
    """Three days of a schedule of every second but one; 60 s are on time, one is made up for."""
    own = schedule(every=2, anchor_at=NOON)
    back = NOON + timedelta(days=3)
    ticks(back, most=500)
    shared = Firing.objects.get(schedule=own, outcome="missed")
    wanted = 3 * 86400 // 2
    assert shared.times + Firing.objects.filter(schedule=own, outcome="fired").count() == wanted
    assert (shared.scheduled_for, shared.until) == (NOON + 2 * SECOND, back - 64 * SECOND)


def test_a_thousand_missed_times_have_a_row_each() -> None:
    own = schedule(misfire={"policy": "skip"})
    ticks(NOON + 1001 * MINUTE)
    assert Firing.objects.filter(schedule=own, outcome="missed", times=1).count() == 999


def test_the_jitter_is_another_each_time_and_the_nominal_time_stays_the_key() -> None:
    own = schedule(cron="*/10 * * * *", jitter=300)
    waits = set()
    for number in range(1, 7):
        own.refresh_from_db()
        assert own.next_slot_at == NOON + number * 10 * MINUTE
        assert own.next_fire_at is not None
        waits.add(own.next_fire_at - own.next_slot_at)
        ticks(own.next_fire_at - SECOND)
        assert own.runs.count() == number - 1
        ticks(own.next_fire_at)
        assert own.runs.count() == number
    assert len(waits) > 2
    assert own.runs.filter(scheduled_for__minute__in=range(0, 60, 10)).count() == 6


def test_missed_times_are_told_to_whoever_listens(django_capture_on_commit_callbacks: Any) -> None:
    heard: list[dict[str, Any]] = []

    def hear(**told: Any) -> None:
        heard.append(told)

    own = schedule(cron="0 * * * *", misfire={"policy": "skip"})
    times_missed.connect(hear)
    kept: list[Any] = []
    with django_capture_on_commit_callbacks(execute=True):
        look(keeper=Keeper(after_commit=kept.extend), now=DOWN)
    for hook in kept:
        hook()
    times_missed.disconnect(hear)
    (told,) = heard
    assert (told["schedule_id"], told["job_id"], told["times"]) == (own.pk, own.job_id, 3)


def test_lateness_is_that_of_the_oldest_time_that_waits() -> None:
    schedule(cron="0 * * * *")
    schedule(cron="30 * * * *")
    assert schedules_late(NOON + 31 * MINUTE) is None
    assert schedules_late(NOON + 31 * MINUTE + SECOND) == MINUTE + SECOND
    ticks(NOON + 35 * MINUTE)
    assert schedules_late(NOON + 35 * MINUTE) is None
