"""Each row of the list of hostile schedules."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from apps.jobs.timing import BadRule, check_cron, rule_of

LIST = Path(__file__).parents[3] / "cases" / "lists" / "cron_dst.tsv"
ROWS = [line.split("\t") for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
TIMES = [row for row in ROWS if re.match(r"\d{4}-", row[3])]
SECOND = timedelta(seconds=1)


def instant(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%MZ").replace(tzinfo=UTC)


def utc(text: str, start: datetime, count: int) -> list[datetime]:
    return rule_of(type="cron", expression=text).between(start, datetime(2100, 1, 1, tzinfo=UTC), count)


@pytest.mark.parametrize(("zone", "cron", "expected"), [row[1:] for row in TIMES], ids=[row[0] for row in TIMES])
def test_a_row_is_due_when_it_says(zone, cron, expected):
    times = [instant(found) for found in re.findall(r"\d{4}-\d\d-\d\dT\d\d:\d\dZ", expected)]
    rule = rule_of(type="cron", expression=cron, timezone=zone)
    assert rule.between(times[0] - SECOND, times[-1], 100) == times


def test_a_day_31_skips_the_short_months():
    months = [at.month for at in utc("0 0 31 * *", datetime(2026, 1, 1, tzinfo=UTC), 7)]
    assert months == [1, 3, 5, 7, 8, 10, 12]


def test_29_february_waits_for_the_next_leap_year():
    assert utc("0 0 29 2 *", datetime(2026, 1, 1, tzinfo=UTC), 2) == [
        instant("2028-02-29T00:00Z"),
        instant("2032-02-29T00:00Z"),
    ]


def test_30_february_is_refused():
    with pytest.raises(BadRule, match="never fires"):
        check_cron("0 0 30 2 *")


def test_day_7_of_the_week_is_sunday():
    assert check_cron("0 0 * * 7") == "0 0 * * 0"
    assert utc("0 0 * * 7", datetime(2026, 3, 1, tzinfo=UTC), 1)[0].strftime("%a") == "Sun"


def test_either_day_field_is_enough():
    days = [at.date().isoformat() for at in utc("0 0 13 * 5", datetime(2026, 6, 30, tzinfo=UTC), 4)]
    assert days == ["2026-07-03", "2026-07-10", "2026-07-13", "2026-07-17"]


def test_a_range_may_go_over_midnight():
    assert {at.hour for at in utc("0 22-2 * * *", datetime(2026, 1, 1, tzinfo=UTC), 50)} == {22, 23, 0, 1, 2}


def test_a_step_begins_anew_in_each_hour():
    minutes = [at.minute for at in utc("*/7 * * * *", datetime(2026, 1, 1, tzinfo=UTC) - SECOND, 10)]
    assert minutes == [0, 7, 14, 21, 28, 35, 42, 49, 56, 0]


def test_names_count():
    times = utc("0 0 * jan mon", datetime(2026, 1, 1, tzinfo=UTC), 30)
    assert {(at.month, at.strftime("%a")) for at in times} == {(1, "Mon")}


def test_after_a_change_of_zone_the_next_time_is_by_the_new_one():
    now = instant("2026-06-01T12:00Z")
    before = rule_of(type="cron", expression="0 2 * * *", timezone="Asia/Shanghai").after(now)
    assert before == instant("2026-06-01T18:00Z")
    assert rule_of(type="cron", expression="0 2 * * *", timezone="UTC").after(now) == instant("2026-06-02T02:00Z")


def test_two_clocks_agree_on_each_minute():
    start = instant("2026-03-08T05:00Z")
    end = start + timedelta(hours=5)
    first, second = (rule_of(type="cron", expression="* * * * *").between(start, end, 999) for _beat in range(2))
    assert first == second == [start + timedelta(minutes=n) for n in range(1, 301)]


def test_no_row_is_left_out():
    told = {"never", "dow-7", "dom-and-dow", "range-wrap", "star-slash-7", "names", "zone-changed", "second-beat"}
    assert {row[0] for row in ROWS} - {row[0] for row in TIMES} == told
