"""What a body may hold."""

from __future__ import annotations

import contextlib
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.exceptions import APIException, ParseError

from apps.api.parsers import MAX_DEPTH, StrictJSONParser


def parse(body: bytes) -> dict[str, object]:
    return StrictJSONParser().parse(io.BytesIO(body))


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b'{"a": "\\u0000"}', "NUL"),
        (b'{"\\u0000": 1}', "NUL"),
        (b'{"a": ["\\ud800"]}', "surrogate"),
        (b'{"a": "\\udc00\\ud800"}', "surrogate"),
        (b'{"a": "\xed\xa0\x80"}', "UTF-8"),
        (b'{"a": "\xff"}', "UTF-8"),
        (b'\xef\xbb\xbf{"a": 1}', "byte order mark"),
        ('{"a": 1}'.encode("utf-16"), "UTF-8"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "-Infinity"),
        (b'{"a": 1e400}', "too large"),
        (b'{"a": 1e131071}', "too large"),
        (b'{"a": 9223372036854775808}', "too large"),
        (b'{"a": -' + b"9" * 5000 + b"}", "too large"),
        (b"[1, 2]", "object"),
        (b"null", "object"),
        (b'"text"', "object"),
        (b"", "line 1"),
        (b"{", "line 1"),
        (b'{"a": 1,}', "line 1"),
        (b'{"a": "\n"}', "line 1"),
        (b"{'a': 1}", "line 1"),
    ],
)
def test_a_body_that_could_not_be_kept_is_refused_in_words(body: bytes, word: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(body)
    assert word in str(caught.value.detail)


def nested(depth: int) -> bytes:
    return b'{"a": ' * depth + b"1" + b"}" * depth


def test_nesting_has_a_limit_and_reaches_it() -> None:
    assert parse(nested(MAX_DEPTH))
    for depth in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(ParseError, match="deeper"):
            parse(nested(depth))
    with pytest.raises(ParseError, match="deeper"):
        parse(b'{"a": ' + b"[" * 500_000)


def test_of_a_repeated_key_the_last_counts() -> None:
    assert parse(b'{"a": 1, "a": 2}') == {"a": 2}


def test_ordinary_text_of_any_script_comes_through() -> None:
    value = {"text": "中文 \U0001f577 \x7f \t \u2028", "number": 9223372036854775807, "half": 0.5, "list": [None, True]}
    assert parse(json.dumps(value).encode()) == value
    assert parse(json.dumps(value, ensure_ascii=False).encode()) == value


def test_a_body_over_the_limit_is_not_read_further(settings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    stream = io.BytesIO(b'{"a": "' + b"x" * 100_000 + b'"}')
    with pytest.raises(APIException) as caught:
        StrictJSONParser().parse(stream)
    assert caught.value.status_code == 400
    assert stream.tell() == 1001


@given(st.binary(max_size=200) | st.text(alphabet='{}[]":,\\u0d8e1-.', max_size=60).map(str.encode))
def test_any_bytes_are_parsed_or_refused(body: bytes) -> None:
    with contextlib.suppress(ParseError):
        assert isinstance(parse(body), dict)
