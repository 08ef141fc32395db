"""What a schedule would do, over the API."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.django_db

ADDRESS = "/api/v1/schedules/preview/"


def test_the_next_times_and_the_words_are_told(api):
    answer = api.post(
        ADDRESS,
        {
            "type": "cron",
            "cron": "30 2 * * *",
            "timezone": "America/New_York",
            "after": "2026-03-07T00:00:00Z",
            "count": 3,
        },
    )
    assert answer.status_code == 200
    assert answer.data == {
        "times": [
            {"at": "2026-03-07T07:30:00Z", "local": "2026-03-07T02:30:00-05:00", "clock_change": False},
            {"at": "2026-03-08T07:00:00Z", "local": "2026-03-08T03:00:00-04:00", "clock_change": True},
            {"at": "2026-03-09T06:30:00Z", "local": "2026-03-09T02:30:00-04:00", "clock_change": False},
        ],
        "words": "every day at 02:30",
    }


def test_without_saying_so_the_next_ten_from_now_in_utc_are_told(api):
    times = api.post(ADDRESS, {"cron": "@daily"}).data["times"]
    assert len(times) == 10
    assert all(time["local"].endswith("T00:00:00+00:00") for time in times)


def test_an_interval_counts_from_its_anchor(api):
    asked = {
        "type": "interval",
        "every": "1h30m",
        "anchor_at": "2026-01-01T00:00:00Z",
        "after": "2026-01-01T02:00:00Z",
        "count": 2,
    }
    answer = api.post(ADDRESS, asked).data
    assert [time["at"] for time in answer["times"]] == ["2026-01-01T03:00:00Z", "2026-01-01T04:30:00Z"]
    assert answer["words"] == "every 1 hour 30 minutes"


def test_a_single_time_that_is_over_has_no_next(api):
    answer = api.post(ADDRESS, {"type": "once", "at": "2026-01-01T00:00:00Z", "after": "2026-01-01T00:00:00Z"})
    assert answer.data == {"times": [], "words": "once on 2026-01-01 at 00:00"}


def test_a_spread_minute_is_settled_by_the_number_of_the_schedule(api):
    asked = {"cron": "~ 0 * * *", "after": "2026-01-01T00:00:00Z", "count": 1}
    found = {api.post(ADDRESS, {**asked, "seed": seed}).data["times"][0]["at"] for seed in range(60)}
    assert len(found) == 60


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, "cron"),
        ({"cron": "* * * *"}, "cron"),
        ({"cron": "0 0 31 2 *"}, "cron"),
        ({"cron": "* * * * *", "timezone": "Mars/Olympus"}, "timezone"),
        ({"type": "solar"}, "type"),
        ({"type": "interval"}, "every"),
        ({"type": "interval", "every": 0}, "every"),
        ({"type": "interval", "every": 5, "anchor_at": "9999-12-31T23:59:59Z"}, "anchor_at"),
        ({"type": "once"}, "at"),
        ({"cron": "@daily", "count": 0}, "count"),
        ({"cron": "@daily", "count": 101}, "count"),
        ({"cron": "@daily", "after": "9999-12-31T23:59:59-14:00"}, "after"),
        ({"cron": "@daily", "after": "0001-01-01T00:00:00Z"}, "after"),
        ({"cron": "@daily", "crno": ""}, "crno"),
    ],
)
def test_nonsense_is_refused_at_its_field(api, asked, field):
    answer = api.post(ADDRESS, asked)
    assert answer.status_code == 400
    assert list(answer.data["fields"]) == [field]


@pytest.mark.parametrize("edge", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
@pytest.mark.parametrize("name", ["at", "anchor_at", "after"])
def test_a_time_at_the_edge_of_the_calendar_harms_nothing(api, edge, name):
    kind = {"at": "once", "anchor_at": "interval"}.get(name, "cron")
    answer = api.post(ADDRESS, {"type": kind, "cron": "@daily", "every": 60, name: edge})
    assert answer.status_code in {200, 400}
