"""What holds for every zone, any expression and ten years."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import pairwise
from random import Random
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from apps.jobs.timing import check_cron, preview, rule_of, zone_of
from apps.jobs.timing.rules import Cron
from apps.jobs.timing.zones import changes_on, offset_at, stretch_at, stretches, zone_names
from tests.apps.jobs.timing.written import BEGIN, MINUTE, fixed_times, instants, minute_by_minute, written, zones

YEARS = range(2026, 2036)
quick = settings(max_examples=100, deadline=None)
thorough = settings(max_examples=40, deadline=None)


def cron(text: str, zone: ZoneInfo) -> Cron:
    return Cron(check_cron(text), zone)


@cache
def changes() -> dict[ZoneInfo, tuple[datetime, ...]]:
    """The changes of clocks of ten years, for one zone of each kind: all 600 zones change them in 30 ways."""
    kinds: dict[tuple[tuple[datetime, timedelta], ...], ZoneInfo] = {}
    for name in sorted(zone_names()):
        zone = zone_of(name)
        ends = [each.end for year in YEARS for each in stretches(zone, year)]
        changed = [end for end in ends if offset_at(zone, end - MINUTE) != offset_at(zone, end)]
        kinds.setdefault(tuple((end, offset_at(zone, end) - offset_at(zone, end - MINUTE)) for end in changed), zone)
    return {zone: tuple(at for at, _by in kind) for kind, zone in kinds.items() if kind}


@given(zone=zones, instant=instants)
@settings(max_examples=300, deadline=None)
def test_a_stretch_has_the_offset_of_each_of_its_instants(zone, instant):
    stretch = stretch_at(zone, instant)
    assert stretch.start <= instant < stretch.end
    assert stretch.offset == offset_at(zone, instant)


@given(text=written(), zone=zones, instant=instants)
@quick
def test_times_strictly_increase_and_no_minute_has_two(text, zone, instant):
    times = cron(text, zone).between(instant, datetime(2100, 1, 1, tzinfo=UTC), 50)
    assert all(earlier < later for earlier, later in pairwise([instant, *times]))
    assert all((at.second, at.microsecond, at.tzinfo) == (0, 0, UTC) for at in times)


@given(text=written(), zone=zones, instant=instants, part=st.floats(0, 1, exclude_max=True))
@quick
def test_the_next_time_is_the_same_from_anywhere_before_it(text, zone, instant, part):
    rule = cron(text, zone)
    at = rule.after(instant)
    if at is not None:
        assert rule.after(instant + (at - instant) * part) in {at, rule.after(at)}
        assert rule.after(at - MINUTE / 60) == at
        assert rule.after(at) != at


@given(text=written(), zone=zones, instant=instants)
@thorough
def test_a_walk_over_the_wall_clock_finds_the_same_times(text, zone, instant):
    start = instant.replace(second=0)
    expected = minute_by_minute(check_cron(text), zone, start, 2880)
    assert cron(text, zone).between(start, start + 2880 * MINUTE, 5000) == expected


# Dense enough that something is due in every night of change.
DENSE = ("*/5 * * * *", "*/30 0-5 * * *", "0 * * * *", "7-59/15 0-23 * * *", "*/10 2 * * *", "0,30 0-4,23 * * *")


@pytest.mark.parametrize("text", DENSE)
def test_a_walk_over_each_kind_of_change_finds_the_same_times(text):
    for zone, moments in changes().items():
        for moment in moments[:2]:
            start, minutes = moment - timedelta(hours=4), 480
            expected = minute_by_minute(text, zone, start, minutes)
            assert cron(text, zone).between(start, start + minutes * MINUTE, 1000) == expected, (zone, moment)


@given(data=st.data(), text=st.one_of(st.sampled_from(DENSE), written()))
@settings(max_examples=20, deadline=None)
def test_a_walk_over_a_night_of_change_finds_the_same_times(data, text):
    zone = data.draw(st.sampled_from(list(changes())))
    start = data.draw(st.sampled_from(changes()[zone])) - data.draw(st.integers(0, 300)) * MINUTE
    expected = minute_by_minute(check_cron(text), zone, start, 600)
    rule = cron(text, zone)
    assert rule.between(start, start + 600 * MINUTE, 1000) == expected
    # Asked anew in the middle, as after a restart, it gives no other answer.
    asked = start + data.draw(st.integers(0, 599)) * MINUTE
    assert rule.between(asked, start + 600 * MINUTE, 1000) == [at for at in expected if at > asked]


def test_a_month_of_another_clock_is_seen():
    """Morocco's clock is changed for Ramadan only: no two changes of a zone are closer."""
    ramadan = [moment for moment in changes()[zone_of("Africa/Casablanca")] if moment.year == 2027]
    assert len(ramadan) == 2
    assert ramadan[1] - ramadan[0] < timedelta(days=40)


def test_every_five_minutes_is_twelve_times_in_each_real_hour_of_every_change():
    for zone, moments in changes().items():
        rule = cron("*/5 * * * *", zone)
        for moment in moments:
            start = moment.replace(minute=0) - timedelta(hours=4)
            times = rule.between(start - MINUTE, start + timedelta(hours=9) - MINUTE, 1000)
            hours = Counter(at.replace(minute=0) for at in times)
            assert set(hours.values()) == {12}, (zone, moment)
            assert len(hours) == 9


@given(clock=fixed_times)
@example(clock=(30, 2))
@example(clock=(0, 0))
@example(clock=(30, 23))
@settings(max_examples=12, deadline=None)
def test_a_fixed_time_comes_once_on_each_local_day(clock):
    minute, hour = clock
    for zone, moments in changes().items():
        rule = cron(f"{minute} {hour} * * *", zone)
        for moment in moments:
            days: dict[date, list[datetime]] = defaultdict(list)
            for at in rule.between(moment - timedelta(days=3), moment + timedelta(days=3), 100):
                local = at.astimezone(zone)
                # The end of a gap that goes up to midnight is the next day's first minute.
                of_the_day_before = (local.hour, local.minute) < (hour, minute)
                days[local.date() - timedelta(days=of_the_day_before)].append(at)
            inner = sorted(days)[1:-1]
            assert all(len(days[day]) == 1 for day in inner), (zone, moment, days)
            assert (inner[-1] - inner[0]).days + 1 == len(inner)


@given(text=st.one_of(st.sampled_from(DENSE), written()), zone=zones, instant=instants, seed=st.integers(0))
@settings(max_examples=15, deadline=None)
def test_a_preview_is_what_thirty_simulated_days_fire(text, zone, instant, seed):
    """A clock looks every now and then, fires what is due, and is started anew at times."""
    rule, chance = cron(text, zone), Random(seed)  # noqa: S311
    now, end = instant, instant + timedelta(days=30)
    coming, fired = rule.after(now), []
    while now < end:
        now += timedelta(seconds=chance.uniform(20, 600))
        while coming is not None and coming <= min(now, end):
            fired.append(coming)
            coming = rule.after(coming)
        if chance.random() < 0.05:
            # Compiled again: nothing of the past, nothing twice.
            coming = cron(text, zone).after(now)
    *promised, following = [time.at for time in preview(rule, zone, instant, len(fired) + 1)]
    assert promised == fired
    assert following > end


@given(zone=zones, instant=instants)
@quick
def test_a_day_is_marked_when_its_clock_is_changed(zone, instant):
    day = instant.astimezone(zone).date()
    noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    hours = [noon + timedelta(hours=n) for n in range(-40, 41)]
    offsets = {offset_at(zone, at) for at in hours if at.astimezone(zone).date() == day}
    # A change at midnight is seen from one of the two days only.
    assert changes_on(zone, day) or len(offsets) == 1


def test_the_days_of_change_of_ten_years_are_marked_and_no_others():
    zone = zone_of("Europe/Berlin")
    marked = [day for n in range(3652) if changes_on(zone, day := BEGIN.date() + timedelta(days=n))]
    assert marked == [moment.astimezone(zone).date() for moment in changes()[zone_of("Africa/Ceuta")]]


@pytest.mark.parametrize("every", [1, 7, 90, 86400])
@given(instant=instants, anchor=instants)
@quick
def test_an_interval_keeps_its_distance_from_the_anchor(every, instant, anchor):
    rule = rule_of(type="interval", every_seconds=every, anchor_at=anchor)
    times = rule.between(instant, datetime(2200, 1, 1, tzinfo=UTC), 5)
    assert len(times) == 5
    assert times[0] > instant
    assert times[0] == anchor or times[0] - instant <= timedelta(seconds=every)
    assert all((at - anchor) % timedelta(seconds=every) == timedelta() for at in times)
    assert all(later - earlier == timedelta(seconds=every) for earlier, later in pairwise(times))
