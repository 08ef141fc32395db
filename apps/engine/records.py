"""One line of the records spool: accepted as it is, or refused with a reason. The gate before any SQL."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any

import orjson

MAX_RECORD_BYTES = 1024 * 1024
MAX_DEPTH = 64
MAX_KEY_BYTES = 1024
MAX_EXPONENT = 308
MAX_DIGITS = 308
# jsonb prints 1e99 as a hundred digits: what all numbers of a record may grow to together
MAX_EXPANDED_DIGITS = 2 * 1024 * 1024

VERBS = frozenset({"item", "log", "stat", "request", "progress", "output", "finish"})
_SCRAPY_CLOUD = {"ITM": "item", "LOG": "log", "REQ": "request", "STA": "stat", "FIN": "finish"}
_VERB_BY_WORD = {name.encode(): name for name in VERBS} | {k.encode(): v for k, v in _SCRAPY_CLOUD.items()}

_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r"
# Patterns that begin with a literal are searched at the speed of memchr: this runs over every item.
_LOWER_EXPONENT = re.compile(rb"e(?<=[0-9]e)[+-]?[0-9]{2}")
_UPPER_EXPONENT = re.compile(rb"E(?<=[0-9]E)[+-]?[0-9]{2}")
# 309 digits in a row show at two neighbours of the bytes sampled at this stride.
_DIGIT_STRIDE = MAX_DIGITS // 2
_DIGITS_AT_STRIDE = re.compile(rb"[0-9.]{2}")
_STRING_OR_NUMBER = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*')
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]')


@dataclass(frozen=True, slots=True)
class Record:
    """`raw` is the spider's own JSON text: valid UTF-8, and PostgreSQL's jsonb takes it."""

    verb: str
    raw: bytes
    obj: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reject:
    """`reason` is one English sentence for the log; `code` is for counting and for translation."""

    code: str
    reason: str


def parse_record(line: bytes) -> Record | Reject | None:
    """None for a blank line. `line` comes without its newline."""
    line = line.strip(_BLANK)
    if line[:3] == _BOM:
        line = line[3:].lstrip(_BLANK)
    if not line:
        return None
    verb = "item"
    if line[:1] != b"{":
        word, _, rest = line.partition(b" ")
        named = _VERB_BY_WORD.get(word)
        if named is None:
            return _no_record(line, word)
        verb, line = named, rest.strip(_BLANK)
    if len(line) > MAX_RECORD_BYTES:
        return Reject("too_large", "The record is larger than 1 MiB.")
    return _checked(verb, line)


def _checked(verb: str, raw: bytes) -> Record | Reject:
    # Counting brackets is an upper bound of the depth: only a record that might be too deep is measured.
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH and _depth(raw) > MAX_DEPTH:
        return Reject("too_deep", f"The record is nested deeper than {MAX_DEPTH} levels.")
    try:
        obj = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        return _no_json(str(error))
    if not isinstance(obj, dict):
        return Reject("not_object", "The record is not a JSON object.")
    if b"\\u0000" in raw and _any_text(obj, _has_nul):
        return Reject("nul", "The record holds a NUL character (\\u0000), which cannot be stored.")
    if len(raw) > MAX_KEY_BYTES and _any_text(obj, _is_long_key, keys_only=True):
        return Reject("long_key", f"The record has a key longer than {MAX_KEY_BYTES} bytes.")
    if _may_hold_a_big_number(raw):
        refused = _check_numbers(raw)
        if refused is not None:
            return refused
    return Record(verb, raw, obj)


def _may_hold_a_big_number(raw: bytes) -> bool:
    if _LOWER_EXPONENT.search(raw) or _UPPER_EXPONENT.search(raw):
        return True
    return len(raw) > MAX_DIGITS and _DIGITS_AT_STRIDE.search(raw[::_DIGIT_STRIDE]) is not None


def _no_record(line: bytes, word: bytes) -> Reject:
    if line[:1] in (b"[", b'"') or line in (b"null", b"true", b"false") or line[:1].isdigit() or line[:1] == b"-":
        return Reject("not_object", "The record is not a JSON object.")
    if word.isalnum() and len(word) <= 20:
        return Reject("unknown_verb", f"The record begins with the unknown word “{word.decode('ascii', 'replace')}”.")
    return Reject("not_json", "The line is not a JSON object.")


def _no_json(error: str) -> Reject:
    if "infinity" in error:
        return _BIG_NUMBER
    if "surrogate" in error and "UTF-8" not in error:
        return Reject("surrogate", "The record holds half a surrogate pair, which is no character.")
    if "UTF-8" in error:
        return Reject("bad_utf8", "The record is not valid UTF-8.")
    if "depth" in error:
        return Reject("too_deep", f"The record is nested deeper than {MAX_DEPTH} levels.")
    return Reject("not_json", f"The record is not valid JSON: {error}.")


_BIG_NUMBER = Reject(
    "big_number", f"The record holds a number with more than {MAX_DIGITS} digits or an exponent above {MAX_EXPONENT}."
)


def _check_numbers(raw: bytes) -> Reject | None:
    expanded = 0
    for token in _STRING_OR_NUMBER.findall(raw):
        if token[:1] == b'"':
            continue
        mantissa, _, exponent = token.lower().partition(b"e")
        digits = len(mantissa) - mantissa.count(b".") - mantissa.count(b"-")
        # A long exponent is refused by its length: int() of 5 000 digits raises.
        if digits > MAX_DIGITS or len(exponent.lstrip(b"+-0")) > 3 or abs(int(exponent or 0)) > MAX_EXPONENT:
            return _BIG_NUMBER
        if not isfinite(float(token)):
            return _BIG_NUMBER
        expanded += abs(int(exponent or 0))
    if expanded > MAX_EXPANDED_DIGITS:
        return Reject("big_number", "The numbers of the record are too large when written out.")
    return None


def _depth(raw: bytes) -> int:
    depth = deepest = 0
    for token in _STRING_OR_BRACKET.findall(raw):
        if token in (b"{", b"["):
            depth += 1
            deepest = max(deepest, depth)
            if deepest > MAX_DEPTH:
                break
        elif token in (b"}", b"]"):
            depth -= 1
    return deepest


def _has_nul(text: str) -> bool:
    return "\0" in text


def _is_long_key(text: str) -> bool:
    return len(text) * 4 > MAX_KEY_BYTES and len(text.encode()) > MAX_KEY_BYTES


def _any_text(obj: dict[str, Any], test: Callable[[str], bool], *, keys_only: bool = False) -> bool:
    """Whether some key (or text) of the value passes `test`. Depth is bounded before, so the stack stays small."""
    waiting: list[Any] = [obj]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if any(map(test, value)):
                return True
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif not keys_only and isinstance(value, str) and test(value):
            return True
    return False
