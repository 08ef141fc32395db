"""Lines keep their bytes and get the level they say, or that of the traceback they are in."""

import time
from pathlib import Path

import pytest

from apps.engine.levels import Level, Leveler, level_of

LOGS = Path(__file__).parent.parent / "cases" / "logs"


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("2026-03-08 01:59:59,999 [scrapy.core.engine] INFO: Spider opened", Level.INFO),
        ("2026-03-08 01:59:59 [scrapy.core.scraper] ERROR: Spider error", Level.ERROR),
        ("2026-03-08 01:59:59 [scrapy.core.engine] DEBUG: Crawled (200) <GET http://x/ERROR>", Level.DEBUG),
        ("2026-03-08 03:00:00,001 WARNING: the clock jumped", Level.WARNING),
        ("2026-03-08 03:00:00,001 - my.spider - CRITICAL - gone", Level.CRITICAL),
        ("2026-03-08 03:00:00.001 | WARNING  | mod:fn:12 - loguru", Level.WARNING),
        ("2026-03-08T03:00:00.123Z [error    ] structlog", Level.ERROR),
        ("2026/03/08 03:00:00 ERROR go", Level.ERROR),
        ("[2026-03-08 03:00:00,001: ERROR/MainProcess] celery", Level.ERROR),
        ("ERROR:root:stdlib", Level.ERROR),
        ("ERROR without timestamp", Level.ERROR),
        ("INFO: 0 errors, ERROR count=0", Level.INFO),
        ("[ERROR] boxed", Level.ERROR),
        ("[ warn ] boxed", Level.WARNING),
        ("error: lower with a colon", Level.ERROR),
        ("warning: lower with a colon", Level.WARNING),
        ("\x1b[31mERROR\x1b[0m coloured", Level.ERROR),
        ('level=error msg="logfmt error"', Level.ERROR),
        ('time="2026-03-08T03:00:00Z" level=warning msg=x', Level.WARNING),
        ('{"level":"ERROR","msg":"json error"}', Level.ERROR),
        ('{"time": 1, "severity": "Warning"}', Level.WARNING),
        ('{"time": 1, "levelname": "WARNING"}', Level.WARNING),
        ("errors are counted here", None),
        ("Error rate is 0", None),
        ("ERRORS=0", None),
        ("INFORMATIONAL text", None),
        ("a level of detail = high", None),
        ("plain", None),
        ("", None),
    ],
)
def test_a_line_is_given_the_level_it_says(line, level):
    assert level_of(line) == level


def test_a_traceback_is_an_error_until_it_ends():
    data = (LOGS / "traceback.log").read_bytes()
    levels = [level for _, level in Leveler().lines(data)]
    assert levels == [Level.INFO] + [Level.ERROR] * 12 + [Level.WARNING, Level.ERROR, Level.ERROR, Level.INFO]


def test_a_traceback_cut_by_windows_has_the_same_levels():
    data = (LOGS / "traceback.log").read_bytes()
    whole = Leveler().lines(data)
    parts, state = [], 0
    for line in data.splitlines(keepends=True):
        leveler = Leveler(state)
        parts += leveler.lines(line)
        state = leveler.state
    assert parts == whole


def test_plain_lines_after_a_printed_traceback_are_plain_again():
    text = "Traceback (most recent call last):\n  File 'x'\nKeyError: 'x'\n" + "page done\n" * 6
    levels = [level for _, level in Leveler().text_lines(text)]
    assert levels[:3] == [Level.ERROR] * 3
    assert levels[-3:] == [Level.INFO] * 3
    text = "Traceback (most recent call last):\n  File 'x'\nKeyError: 'x'\n\npage done\n"
    assert Leveler().text_lines(text)[-1] == ("page done", Level.INFO)


def test_odd_bytes_are_kept_visible():
    lines = [line for line, _ in Leveler().lines((LOGS / "odd_bytes.bin").read_bytes())]
    assert lines[:4] == ["plain", "nul␀inside", "bad utf8 \ufffd\ufffd\ufffd end", "surrogate bytes \ufffd\ufffd\ufffd"]
    assert "progress 10%\rprogress 50%\rprogress 100%" in lines
    assert "crlf line\r" in lines
    assert lines[-1] == "no newline at end"


def test_forged_frames_and_markup_are_plain_text():
    for name in ("forged_frames.log", "xss.log"):
        data = (LOGS / name).read_bytes()
        lines = Leveler().lines(data)
        assert "\n".join(line for line, _ in lines) + "\n" == data.decode()
        assert {level for _, level in lines} == {Level.INFO}


def test_hostile_lines_do_not_slow_the_match():
    hostile = ["2026-03-08 01:59:59" + " a-b" * 20_000, "[" * 60_000, "level" * 13_000 + "=", "\x1b[" + "1;" * 30_000]
    started = time.process_time()
    for line in hostile:
        level_of(line)
    assert time.process_time() - started < 0.1


def test_plain_lines_are_levelled_fast():
    data = (
        b"fetched https://demo.test/catalogue/page-00012 in 31 ms, 20 items, queue at 113 waiting requests, all fine\n"
        * 3000
    )
    best = min(_seconds(data) for _ in range(5))
    assert 3000 / best > 300_000, f"{3000 / best:,.0f} lines/s"


def _seconds(data: bytes) -> float:
    started = time.process_time()
    Leveler().lines(data)
    return time.process_time() - started
