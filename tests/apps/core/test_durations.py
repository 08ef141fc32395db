"""Spans and sizes as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.core.durations import (
    BadSize,
    BadSpan,
    format_duration,
    format_megabytes,
    parse_duration,
    parse_megabytes,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("1h30m", 5400),
        ("1 h 30 min", 5400),
        ("1.5h", 5400),
        ("2 小时", 7200),
        ("1d", 86400),
        ("0", 0),
        ("15 MIN", 900),
    ],
)
def test_a_span_is_understood(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "1x", "-5", "1h-30m", "1h30", "1e3", "9" * 50, "nan", "1 2", "\0"])
def test_nonsense_is_no_span(text: str) -> None:
    with pytest.raises(BadSpan):
        parse_duration(text)


@given(st.integers(0, 10**8))
def test_a_formatted_span_is_the_same_span(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "megabytes"),
    [("512", 512), ("512 MB", 512), ("1.5 GiB", 1536), ("1g", 1024), ("2 TB", 2 * 1024**2), ("512m", 512)],
)
def test_a_size_is_understood(text: str, megabytes: int) -> None:
    assert parse_megabytes(text) == megabytes


@pytest.mark.parametrize("text", ["", "MB", "-1", "1 XB", "1e9", "9" * 30, "1 M B"])
def test_nonsense_is_no_size(text: str) -> None:
    with pytest.raises(BadSize):
        parse_megabytes(text)


@given(st.integers(1, 10**6))
def test_a_formatted_size_is_the_same_size(megabytes: int) -> None:
    assert parse_megabytes(format_megabytes(megabytes)) == megabytes
