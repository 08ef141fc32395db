"""Cron expressions: what is understood, and what is refused with which words."""

from __future__ import annotations

import pytest
from django.utils import translation

from apps.jobs.timing import BadRule, check_cron, joined, rule_of, spread

MANY_TERMS = ",".join(f"{first}-6/{step}" for first in range(5) for step in (2, 3, 4, 5))
NO_ZONES = (
    *("", "Mars/Olympus", "europe/berlin", "UTC+3", "../UTC", "Europe", "Zulu ", "UTC\0"),
    *("Factory", "localtime", "posixrules", "right/UTC"),
)


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("  30   9 *\t* 1-5 ", "30 9 * * 1-5"),
        ("@hourly", "0 * * * *"),
        ("@Daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("0 0 * JAN,feb Mon-fri", "0 0 * 1,2 1-5"),
        ("05 09 01 01 00", "5 9 1 1 0"),
        ("0 22-2 * * *", "0 22-23,0-2 * * *"),
        ("0 22-2/2 * * *", "0 22,0,2 * * *"),
        ("50-10 * * * *", "50-59,0-10 * * * *"),
        ("0 0 28-3 11-2 *", "0 0 28-31,1-3 11-12,1-2 *"),
        ("0 0 * * fri-mon", "0 0 * * 5-6,0-1"),
        ("0 0 * * sat-sun", "0 0 * * 6,0"),
        ("0 0 * * 5-7", "0 0 * * 5-6,0"),
        ("0 0 * * 0-7", "0 0 * * 0-6"),
        ("0 0 * * 7-7", "0 0 * * 0"),
        ("0 0 * * 1-07", "0 0 * * 1-6,0"),
        ("0 0 * * 7-3", "0 0 * * 0-3"),
        ("0 0 * * 0-7/3", "0 0 * * 0-6/3"),
        ("5/15 * * * *", "5-59/15 * * * *"),
        ("*/1 * * * *", "* * * * *"),
        ("5,*,7 * * * *", "* * * * *"),
        ("1,2,1,2 * * * *", "1,2 * * * *"),
        ("10-10 10-11/5 * * *", "10 10 * * *"),
        ("0 0 29 2 *", "0 0 29 2 *"),
        ("0 0 30 2,4 *", "0 0 30 2,4 *"),
        # The Mondays of February make up for the day that never comes.
        ("0 0 31 2 1", "0 0 31 2 1"),
    ],
)
def test_what_people_write_becomes_five_plain_fields(text, resolved):
    assert check_cron(text) == resolved
    assert check_cron(resolved) == resolved


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "Enter a cron expression such as 30 9 * * 1-5."),
        (" \n ", "Enter a cron expression such as 30 9 * * 1-5."),
        ("* * * *", "five fields (minute, hour, day of month, month, day of week); this has 4."),
        ("* * * * * * *", "this has 7."),
        ("0 * * * * *", "This has six fields; seconds are not supported."),
        ("@reboot", "“@reboot” is not known. Known: @hourly, @daily,"),
        ("60 * * * *", "Minute: 60 is not between 0 and 59."),
        ("0 24 * * *", "Hour: 24 is not between 0 and 23."),
        ("0 0 0 * *", "Day of month: 0 is not between 1 and 31."),
        ("0 0 32 * *", "Day of month: 32 is not between 1 and 31."),
        ("0 0 * 13 *", "Month: 13 is not between 1 and 12."),
        ("0 0 * * 8", "Day of week: 8 is not between 0 and 7."),
        ("0 0 * foo *", "Month: there is no “FOO”. Known: JAN, FEB,"),
        ("0 0 * * jan", "Day of week: there is no “JAN”. Known: SUN, MON,"),
        ("mon * * * *", "Minute: “MON” is not understood."),
        ("*/0 * * * *", "Minute: the step 0 is not between 1 and 59."),
        ("*/90 * * * *", "Minute: the step 90 is not between 1 and 59. For longer spans take an interval."),
        ("0 */24 * * *", "Hour: the step 24 is not between 1 and 23."),
        ("1,,2 * * * *", "Minute: there is nothing before, after or between two commas."),
        (", * * * *", "Minute: there is nothing before, after or between two commas."),
        ("-5 * * * *", "Minute: “-5” is not understood."),
        ("1-2-3 * * * *", "Minute: “1-2-3” is not understood."),
        ("*-5 * * * *", "Minute: “*-5” is not understood."),
        ("1.5 * * * *", "Minute: “1.5” is not understood."),
        ("٣ * * * *", "Minute: “٣” is not understood."),
        ("²  * * * *", "Minute: “²” is not understood."),
        ("\0 * * * *", "Minute: “␀” is not understood."),
        ("0 ~ * * *", "Hour: “~” spreads minutes and stands in the first field only."),
        ("0 H * * *", "Hour: “H” spreads minutes and stands in the first field only."),
        ("~/0 * * * *", "Minute: the step 0 is not between 1 and 59."),
        ("~/99 * * * *", "Minute: the step 99 is not between 1 and 59."),
        ("~,5 * * * *", "Minute: “~” is not understood."),
        ("0 0 L * *", "Day of month: “L” is not understood; L, W, # and ? are not supported."),
        ("0 0 15W * *", "Day of month: “15W” is not understood; L, W, # and ? are not supported."),
        ("0 0 ? * 1", "Day of month: “?” is not understood; L, W, # and ? are not supported."),
        ("0 0 * * 5#2", "Day of week: “5#2” is not understood; L, W, # and ? are not supported."),
        ("0 0 31 2 *", "This never fires: none of the chosen months has a day 31."),
        ("0 0 30 feb */2", "This never fires: none of the chosen months has a day 30."),
        ("0 0 31 2,4,6,9,11 *", "This never fires: none of the chosen months has a day 31."),
        (
            "0 0 * * " + ",".join(f"{n}-6/{step}" for n in range(4) for step in (2, 3, 4, 5)) + ",1-6",
            "at most 64 charact",
        ),
        ("1" * 501, "at most 500 characters."),
        ("0" * 400 + " * * * *", "is not understood."),
    ],
)
def test_what_cannot_be_kept_is_refused_with_the_reason(text, sentence):
    with pytest.raises(BadRule) as refusal:
        check_cron(text)
    assert sentence in refusal.value.message
    assert refusal.value.fields == {"expression": [refusal.value.message]}


def test_a_refusal_is_in_the_language_of_the_reader_each_time():
    sentences = []
    for language in ("en", "zh-hans", "en"):
        with translation.override(language), pytest.raises(BadRule) as refusal:
            check_cron("0 0 31 2 *")
        sentences.append(refusal.value.message)
    assert sentences[0] == sentences[2] == "This never fires: none of the chosen months has a day 31."


def test_sixty_schedules_in_a_row_take_sixty_minutes():
    assert {spread("~ 0 * * *", seed) for seed in range(1000, 1060)} == {f"{n} 0 * * *" for n in range(60)}
    assert check_cron("h 0 * * *", seed=7) == spread("~ 0 * * *", 7)


def test_a_spread_step_begins_at_a_minute_of_its_own():
    assert {check_cron("~/15 * * * *", seed=seed) for seed in range(15)} == {f"{n}-59/15 * * * *" for n in range(15)}
    assert check_cron("~/59 * * * *", seed=59 * 8) == "0-59/59 * * * *"


def test_a_spread_is_settled_once_and_for_all():
    assert len({check_cron("~ 0 * * *", seed=12345) for _ in range(5)}) == 1
    assert spread("5 0 * * *", 9) == "5 0 * * *"


def test_five_columns_become_one_expression():
    columns = {"minute": "0, 30", "hour": " 9", "day_of_month": "*", "month_of_year": "", "day_of_week": "mon-fri "}
    assert joined(**columns) == "0,30 9 * * mon-fri"


@pytest.mark.parametrize("name", NO_ZONES)
def test_what_is_no_zone_is_refused(name):
    with pytest.raises(BadRule, match="is no time zone") as refusal:
        rule_of(type="cron", expression="* * * * *", timezone=name)
    assert list(refusal.value.fields) == ["timezone"]
