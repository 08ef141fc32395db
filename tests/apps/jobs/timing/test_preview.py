"""What is promised: the next times, days of change, and the warning."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apps.jobs.timing import Rule, preview, rule_of, shortest_gap, warning

NOW = datetime(2026, 3, 28, tzinfo=UTC)


def cron(text: str, zone: str = "UTC") -> Rule:
    return rule_of(type="cron", expression=text, timezone=zone)


def test_the_day_of_a_change_is_marked_in_the_zone_asked_for():
    rule = cron("0 12 * * *", "Europe/Berlin")
    shown = preview(rule, "Europe/Berlin", NOW, 3)
    assert [(f"{time.local:%d %H:%M}", time.clock_change) for time in shown] == [
        ("28 12:00", False),
        ("29 12:00", True),
        ("30 12:00", False),
    ]
    # The viewer's own clock is not changed that day.
    seen = preview(rule, "Asia/Shanghai", NOW, 3)
    assert [f"{time.local:%d %H:%M}" for time in seen] == ["28 19:00", "29 18:00", "30 18:00"]
    assert not any(time.clock_change for time in seen)
    assert [time.at for time in seen] == [time.at for time in shown]


def test_a_change_at_midnight_marks_both_days():
    shown = preview(cron("0 12 * * *", "Asia/Beirut"), "Asia/Beirut", NOW - timedelta(days=1), 4)
    assert [time.local.day for time in shown if time.clock_change] == [28, 29]


def test_a_preview_ends_where_the_rule_ends():
    assert len(preview(rule_of(type="once", once_at=NOW), "UTC", NOW - timedelta(days=1), 10)) == 1
    assert preview(rule_of(type="once", once_at=NOW), "UTC", NOW, 10) == []


@pytest.mark.parametrize(
    ("text", "zone", "seconds"),
    [
        ("*/5 * * * *", "UTC", 300),
        ("*/7 * * * *", "UTC", 240),
        ("0 9,10 * * 1-5", "UTC", 3600),
        ("0 0 1 * *", "UTC", 28 * 86400),
        # The night of the change is an hour shorter.
        ("0 4 * * *", "Europe/Berlin", 82800),
    ],
)
def test_the_shortest_gap_counts(text, zone, seconds):
    assert shortest_gap(cron(text, zone), NOW) == seconds


def test_a_single_time_has_no_gap():
    assert shortest_gap(rule_of(type="once", once_at=NOW), NOW - timedelta(days=1)) is None
    assert shortest_gap(rule_of(type="interval", every_seconds=90), NOW) == 90


def test_runs_longer_than_the_gap_are_warned_of():
    rule = cron("*/5 * * * *")
    assert warning(rule, average_seconds=301, after=NOW) == (
        "Runs of this job take 5 minutes 1 second on average, but only 5 minutes lie between two of these times."
    )


@pytest.mark.parametrize("average", [None, 0, 1, 300])
def test_runs_within_the_gap_are_not(average):
    assert warning(cron("*/5 * * * *"), average_seconds=average, after=NOW) == ""
    assert warning(rule_of(type="once", once_at=NOW), average_seconds=9999, after=NOW) == ""
