"""Schedules in words, in both languages."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from django.utils import translation
from hypothesis import given, settings

from apps.jobs.timing import rule_of, words
from tests.apps.jobs.timing.written import written

# ruff: noqa: RUF001  # Chinese has its own comma and colon

CRON = [
    ("30 9 * * 1-5", "every weekday at 09:30", "每个工作日 09:30"),
    ("0 0 * * *", "every day at 00:00", "每天 00:00"),
    ("0 9,18 * * sat,sun", "every Saturday and Sunday at 09:00 and 18:00", "每周六和周日 09:00 和 18:00"),
    ("0 9 * * 1,3,5", "every Monday, Wednesday and Friday at 09:00", "每周一、周三和周五 09:00"),
    ("* * * * *", "every minute", "每分钟"),
    ("*/5 * * * *", "every 5 minutes", "每 5 分钟"),
    ("*/7 * * * *", "every 7 minutes from minute 0 of each hour", "每小时从第 0 分起每 7 分钟"),
    ("4-59/15 * * * *", "every 15 minutes from minute 4 of each hour", "每小时从第 4 分起每 15 分钟"),
    ("*/5 * * * 1", "every 5 minutes, every Monday", "每周一，每 5 分钟"),
    ("0 * * * *", "every hour on the hour", "每小时整点"),
    ("5 * * * *", "every hour at minute 5", "每小时的第 5 分"),
    ("0,20,50 * * * *", "every hour at the minutes 0, 20 and 50", "每小时的第 0、20 和 50 分"),
    ("0 */2 * * *", "every 2 hours on the hour", "每 2 小时整点"),
    ("5 */3 * * *", "every 3 hours at minute 5", "每 3 小时的第 5 分"),
    ("0 9-17 * * 1-5", "every hour from 09:00 to 17:00, every weekday", "每个工作日，09:00 至 17:00 每小时"),
    ("*/15 9-17 * * *", "every 15 minutes from 09:00 to 17:45", "09:00 至 17:45 每 15 分钟"),
    ("0 22-2 * * *", "every hour from 22:00 to 02:00", "22:00 至 02:00 每小时"),
    ("0 0 1 * *", "on day 1 of each month at 00:00", "每月 1 日 00:00"),
    ("0 6 1,15 * *", "on day 1 and 15 of each month at 06:00", "每月 1 和 15 日 06:00"),
    ("0 0 10-20 * *", "on day 10 to 20 of each month at 00:00", "每月 10 至 20 日 00:00"),
    ("0 0 */3 * *", "on day 1, 4, 7, …, 31 of each month at 00:00", "每月 1、4、7、…、31 日 00:00"),
    ("0 0 1 1 *", "on day 1 of January at 00:00", "一月 1 日 00:00"),
    ("0 9 * 1,7 1", "every Monday in January and July at 09:00", "一月和七月的每周一 09:00"),
    ("0 0 13 * 5", "on day 13 of the month and also every Friday at 00:00", "每月 13 日以及每周五 00:00"),
    (
        "0 0 */10 * 1",
        "every Monday that falls on one of the days 1, 11, 21 and 31 of the month at 00:00",
        "每周一且为当月 1、11、21 和 31 日 00:00",
    ),
    ("0 0 * * 0-6", "every day at 00:00", "每天 00:00"),
    (
        "1-5,7 3,4 * * *",
        "at 1 through 5 and 7 minutes past the hour, at 03:00 and 04:00",
        "在每小时的 1 到 5 和 7 分、在 03:00 和 04:00",
    ),
]
SPANS = [
    (1, "every second", "每秒"),
    (45, "every 45 seconds", "每 45 秒"),
    (60, "every minute", "每分钟"),
    (5400, "every 1 hour 30 minutes", "每 1 小时 30 分钟"),
    (86400, "every day", "每天"),
    (7 * 86400, "every week", "每周"),
    (14 * 86400, "every 14 days", "每 14 天"),
]


@pytest.fixture
def chinese() -> Iterator[None]:
    with translation.override("zh-hans"):
        yield


@pytest.mark.parametrize(("text", "english"), [row[:2] for row in CRON])
def test_a_cron_expression_is_said_in_english(text, english):
    assert words(rule_of(type="cron", expression=text)) == english


@pytest.mark.parametrize(("text", "said"), [row[::2] for row in CRON])
def test_a_cron_expression_is_said_in_chinese(chinese, text, said):
    assert words(rule_of(type="cron", expression=text)) == said


@pytest.mark.parametrize(("seconds", "english", "said"), SPANS)
def test_an_interval_is_said_in_both(seconds, english, said):
    rule = rule_of(type="interval", every_seconds=seconds)
    assert words(rule) == english
    with translation.override("zh-hans"):
        assert words(rule) == said


def test_a_single_time_is_said_by_the_clock_of_its_zone():
    rule = rule_of(type="once", once_at=datetime(2026, 12, 1, 9, tzinfo=UTC), timezone="Asia/Shanghai")
    assert words(rule) == "once on 2026-12-01 at 17:00"
    with translation.override("zh-hans"):
        assert words(rule) == "仅一次：2026-12-01 17:00"
    exact = datetime(2026, 12, 1, 9, 0, 5, tzinfo=ZoneInfo("UTC"))
    assert words(rule_of(type="once", once_at=exact)) == "once on 2026-12-01 at 09:00:05"


@given(text=written())
@settings(max_examples=100, deadline=None)
def test_every_expression_has_words_in_one_line_and_one_language(text):
    rule = rule_of(type="cron", expression=text)
    english = words(rule)
    assert english
    assert english.isprintable()
    assert english.replace("…", "").isascii()
    with translation.override("zh-hans"):
        said = words(rule)
    assert said.isprintable()
    assert not any("a" <= letter.lower() <= "z" for letter in said), said
