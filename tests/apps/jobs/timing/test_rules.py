"""Rules at their edges: repeated hours, intervals, single times, new rules of a zone, and what they cost."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import process_time
from zoneinfo import ZoneInfo

import pytest

from apps.jobs.timing import BadRule, Rule, local_day, rule_of, zone_of

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def cron(text: str, zone: str = "UTC") -> Rule:
    return rule_of(type="cron", expression=text, timezone=zone)


@pytest.mark.parametrize("minutes", range(-90, 150, 7))
def test_asked_inside_a_repeated_hour_a_fixed_time_does_not_come_again(minutes):
    rule = cron("30 1 * * *", "America/New_York")
    first = datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
    asked = first + timedelta(minutes=minutes)
    assert rule.after(asked) == (first if asked < first else datetime(2026, 11, 2, 6, 30, tzinfo=UTC))


def test_several_fixed_times_in_one_gap_come_as_one():
    rule = cron("5,15,45 2-3 * * *", "America/New_York")
    times = rule.between(datetime(2026, 3, 8, 6, tzinfo=UTC), datetime(2026, 3, 8, 9, tzinfo=UTC), 10)
    assert [at.strftime("%H:%M") for at in times] == ["07:00", "07:05", "07:15", "07:45"]


def test_a_fixed_time_at_the_end_of_the_gap_is_not_doubled_by_one_within():
    rule = cron("0,30 2-3 * * *", "Europe/Berlin")
    times = rule.between(datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 3, 29, 2, tzinfo=UTC), 10)
    assert [at.strftime("%H:%M") for at in times] == ["01:00", "01:30"]


def test_a_day_that_the_calendar_left_out_is_made_up_for_at_its_end():
    """Samoa had no 30 December 2011."""
    times = cron("0 12 * * *", "Pacific/Apia").between(
        datetime(2011, 12, 29, tzinfo=UTC), datetime(2012, 1, 1, tzinfo=UTC), 10
    )
    assert [at.strftime("%dT%H") for at in times] == ["29T22", "30T10", "30T22", "31T22"]


def test_half_an_hour_of_lord_howe_has_its_fires():
    """A walk by whole hours would step over 03:00 to 03:29, when the clock moves from 02:00 to 02:30."""
    times = cron("*/10 3 * * *", "Australia/Lord_Howe").between(
        datetime(2026, 10, 3, 15, tzinfo=UTC), datetime(2026, 10, 3, 18, tzinfo=UTC), 10
    )
    assert [at.strftime("%H:%M") for at in times] == ["16:00", "16:10", "16:20", "16:30", "16:40", "16:50"]


def test_a_midnight_that_does_not_exist_is_no_midnight_as_time_passes():
    rule = cron("*/30 0 * * *", "Asia/Beirut")
    times = rule.between(datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 3, 30, tzinfo=UTC), 10)
    assert [at.strftime("%d %H:%M") for at in times] == ["29 21:00", "29 21:30"]


def test_an_instant_in_any_zone_and_with_seconds_is_understood():
    asked = datetime(2026, 6, 1, 14, 0, 59, 999999, tzinfo=ZoneInfo("Europe/Berlin"))
    assert cron("* * * * *").after(asked) == datetime(2026, 6, 1, 12, 1, tzinfo=UTC)


def test_beyond_the_calendar_nothing_is_due():
    assert cron("* * * * *").after(datetime(9999, 12, 31, 23, 59, tzinfo=UTC)) is None


def test_between_is_open_at_its_start_and_closed_at_its_end():
    rule = cron("0 * * * *")
    assert rule.between(NOON, NOON + timedelta(hours=2), 9) == [NOON + timedelta(hours=n) for n in (1, 2)]
    assert rule.between(NOON, NOON + timedelta(hours=9), 3)[-1] == NOON + timedelta(hours=3)
    assert rule.between(NOON, NOON, 9) == []


def test_an_interval_begins_at_its_anchor_and_never_fires_the_past():
    rule = rule_of(type="interval", every_seconds=90, anchor_at=NOON.replace(microsecond=5))
    assert rule.after(NOON - timedelta(days=1)) == NOON
    assert rule.after(NOON) == NOON + 90 * SECOND
    assert rule.after(NOON + 89.5 * SECOND) == NOON + 90 * SECOND
    assert rule.after(NOON + timedelta(days=365)) == NOON + timedelta(days=365, seconds=90)


def test_a_single_time_comes_once():
    rule = rule_of(type="once", once_at=NOON)
    assert rule.after(NOON - SECOND) == NOON
    assert rule.after(NOON) is None
    assert rule.between(NOON - SECOND, NOON + SECOND, 5) == [NOON]


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"type": "interval"}, "every_seconds"),
        ({"type": "interval", "every_seconds": 0}, "every_seconds"),
        ({"type": "interval", "every_seconds": -5}, "every_seconds"),
        ({"type": "interval", "every_seconds": True}, "every_seconds"),
        ({"type": "interval", "every_seconds": 1.5}, "every_seconds"),
        ({"type": "interval", "every_seconds": 10**12}, "every_seconds"),
        ({"type": "interval", "every_seconds": 5, "anchor_at": datetime(2026, 1, 1)}, "anchor_at"),  # noqa: DTZ001
        ({"type": "once"}, "once_at"),
        ({"type": "once", "once_at": datetime(2026, 1, 1)}, "once_at"),  # noqa: DTZ001
        ({"type": "once", "once_at": datetime(9999, 1, 1, tzinfo=UTC)}, "once_at"),
        ({"type": "once", "once_at": datetime(1, 1, 1, tzinfo=ZoneInfo("Asia/Tokyo"))}, "once_at"),
        ({"type": "cron"}, "expression"),
        ({"type": "solar"}, "type"),
        ({"type": ""}, "type"),
    ],
)
def test_what_is_no_rule_is_refused_at_its_field(said, field):
    with pytest.raises(BadRule) as refusal:
        rule_of(**said)
    assert (refusal.value.field, list(refusal.value.fields)) == (field, [field])
    assert refusal.value.message


def test_a_local_day_is_the_one_that_people_see():
    late = datetime(2026, 1, 1, 23, 30, tzinfo=UTC)
    assert local_day(late, "Europe/Berlin").isoformat() == "2026-01-02"
    assert local_day(late, ZoneInfo("America/New_York")).isoformat() == "2026-01-01"


@pytest.fixture
def zone_files(tmp_path: Path) -> Iterator[Path]:
    """A folder that stands before the zone files of the system; what is read again is read from there."""
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath([str(tmp_path), *before])
    yield tmp_path
    zoneinfo.reset_tzpath(before)
    ZoneInfo.clear_cache(only_keys=["Europe/Berlin"])


def zone_file(name: str) -> bytes:
    found = [path for folder in zoneinfo.TZPATH if (path := Path(folder, name)).is_file()]
    return found[0].read_bytes()


def test_new_rules_of_a_zone_move_the_next_time(zone_files):
    """Berlin takes Lisbon's clock."""
    asked = datetime(2026, 6, 1, tzinfo=UTC)
    zone_of("Europe/Berlin")
    before = cron("30 2 * * *", "Europe/Berlin").after(asked)
    (zone_files / "Europe").mkdir()
    (zone_files / "Europe" / "Berlin").write_bytes(zone_file("Europe/Lisbon"))
    # As a new process would find it.
    ZoneInfo.clear_cache(only_keys=["Europe/Berlin"])
    after = cron("30 2 * * *", "Europe/Berlin").after(asked)
    assert before == datetime(2026, 6, 1, 0, 30, tzinfo=UTC)
    assert after == datetime(2026, 6, 1, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize("text", ["*/5 * * * *", "30 2 * * *", "0 9 * * 1-5", "0 0 13 * 5", "*/7 3 1 */2 *"])
def test_a_thousand_next_times_cost_less_than_a_third_of_a_second(text):
    rule = cron(text, "Europe/Berlin")
    instants = [datetime(2026, 1, 1, tzinfo=UTC) + n * timedelta(hours=29) for n in range(1000)]
    rule.after(instants[0])
    began = process_time()
    for instant in instants:
        # Rules are asked for each time, as firing does.
        cron(text, "Europe/Berlin").after(instant)
    assert process_time() - began < 0.3
