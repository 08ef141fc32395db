"""The clock of the database is set forward and back."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from apps.jobs.models import Clock, Firing
from apps.jobs.services.firing import Keeper, look
from apps.runs.models import Run
from tests.apps.jobs.firing.timed import HOUR, MINUTE, NOON, ledger, schedule, ticks

pytestmark = pytest.mark.django_db

SECOND = timedelta(seconds=1)


def test_two_hours_forward_and_back_each_time_is_fired_at_most_once() -> None:
    own = schedule(cron="*/10 * * * *")
    ticks(NOON + 10 * MINUTE)
    # The time of 14:10 is fired by the wrong clock; what lies before is missed for now.
    ticks(NOON + 2 * HOUR + 10 * MINUTE)
    assert [time for time, outcome, _why in ledger(own) if outcome == "fired"] == ["12:10", "14:00", "14:10"]
    for number in range(1, 180):
        ticks(NOON + 10 * MINUTE + number * MINUTE)
    rows = ledger(own)
    assert [outcome for _time, outcome, _why in rows] == ["fired"] * 18
    assert Run.objects.filter(schedule=own).count() == 18
    assert [time for time, *_rest in rows] == [f"{12 + n // 6}:{n % 6}0" for n in range(1, 19)]


def test_a_small_step_back_changes_nothing() -> None:
    own = schedule()
    ticks(NOON + MINUTE)
    ticks(NOON + MINUTE - 4 * SECOND)
    ticks(NOON + 2 * MINUTE)
    assert ledger(own) == [("12:01", "fired", ""), ("12:02", "fired", "")]


def test_a_row_of_many_missed_times_keeps_those_that_are_past() -> None:
    own = schedule(every=2, anchor_at=NOON, misfire={"policy": "skip"})
    ticks(NOON + HOUR, most=200)
    shared = Firing.objects.get(schedule=own, until__isnull=False)
    assert shared.times == 1769
    ticks(NOON + 10 * MINUTE + SECOND, most=200)
    shared.refresh_from_db()
    assert (shared.until, shared.times) == (NOON + 10 * MINUTE, 300)
    ticks(NOON + 10 * MINUTE + 2 * SECOND)
    assert Firing.objects.filter(schedule=own, scheduled_for=NOON + 10 * MINUTE + 2 * SECOND, outcome="fired").exists()


def test_what_was_made_by_the_wrong_clock_is_reckoned_anew() -> None:
    ticks(NOON + 2 * HOUR)
    own = schedule(cron="30 12 * * *", now=NOON + 2 * HOUR)
    ticks(NOON + MINUTE)
    ticks(NOON + 30 * MINUTE)
    assert ledger(own) == [("12:30", "fired", "")]


def test_the_latest_time_is_kept_while_others_look_too() -> None:
    ticks(NOON)
    ticks(NOON - 3 * SECOND)
    ticks(NOON + 3 * SECOND)
    assert Clock.objects.get().seen_at == NOON
    ticks(NOON + 6 * SECOND)
    assert Clock.objects.get().seen_at == NOON + 6 * SECOND


# -- rules of zones -------------------------------------------------------------------------------------------------


@pytest.fixture
def zone_files(tmp_path: Path) -> Iterator[Path]:
    """A folder that stands before the zone files of the system."""
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath([str(tmp_path), *before])
    yield tmp_path
    zoneinfo.reset_tzpath(before)
    ZoneInfo.clear_cache(only_keys=["Europe/Berlin"])


def zone_file(name: str) -> bytes:
    found = [path for folder in zoneinfo.TZPATH if (path := Path(folder, name)).is_file()]
    return found[0].read_bytes()


def test_new_rules_of_a_zone_move_the_next_time_after_a_restart(zone_files: Path) -> None:
    """Berlin takes Lisbon's clock: an hour later in UTC."""
    own = schedule(cron="0 18 * * *", timezone="Europe/Berlin")
    other = schedule(cron="0 18 * * *", timezone="Asia/Tokyo")
    ticks(NOON + MINUTE)
    (zone_files / "Europe").mkdir()
    (zone_files / "Europe" / "Berlin").write_bytes(zone_file("Europe/Lisbon"))
    ZoneInfo.clear_cache(only_keys=["Europe/Berlin"])
    for _look in range(3):
        ticks(NOON + 2 * MINUTE, keeper=Keeper())
    own.refresh_from_db()
    other.refresh_from_db()
    assert (own.next_slot_at, own.next_fire_at) == (NOON + 6 * HOUR, NOON + 6 * HOUR)
    assert other.next_slot_at == NOON + 21 * HOUR
    ticks(NOON + 6 * HOUR)
    assert ledger(own) == [("18:00", "fired", "")]


def test_rules_that_are_as_they_were_are_looked_at_once() -> None:
    schedule(cron="0 18 * * *", timezone="Europe/Berlin")
    assert any(look(now=NOON).seconds < 0.05 for _look in range(3))
    keeper = Keeper()
    assert all(look(keeper=keeper, now=NOON).seconds > 0.05 for _look in range(3))
