"""The gate before SQL: what passes can be stored and read again, what does not is one counted reject."""

import json
import runpy
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.records import MAX_RECORD_BYTES, Record, Reject, parse_record
from apps.engine.spool import RECORD_RULE, read_window

CASES = Path(__file__).parent.parent / "cases"
ODD = {
    "nul-escape": "nul",
    "lone-surrogate": "surrogate",
    "nan": "not_json",
    "1e400": "big_number",
    "1e131071": "big_number",
    "int-5000-digits": "big_number",
    "dup-keys": None,
    "nested-1000": "too_deep",
    "bad-utf8": "bad_utf8",
    "utf8-overlong": "bad_utf8",
    "bom-line": None,
    "truncated": "not_json",
    "trailing": "not_json",
    "single-quotes": "not_json",
    "crlf": None,
    "last-line-without-newline": None,
}


def records_of(path: Path) -> list[Record | Reject]:
    offset, cut, out = 0, False, []
    while True:
        window = read_window(path, offset, 1024 * 1024, cut=cut, final=True, rule=RECORD_RULE)
        parsed = [parse_record(line) for line in window.data.split(b"\n")]
        out += [record for record in parsed if record is not None]
        offset, cut = window.next_offset, window.cut
        if window.at_end:
            return out


def test_each_odd_item_is_accepted_or_refused_for_its_own_reason():
    seen = {}
    others = []
    for line in (CASES / "items" / "items_odd.jsonl").read_bytes().split(b"\n"):
        parsed = parse_record(line)
        if b'"case":"' in line:
            name = line.split(b'"case":"')[1].split(b'"')[0].decode()
            seen[name] = parsed.code if isinstance(parsed, Reject) else None
        elif parsed is not None:
            others.append(parsed)
    assert seen == ODD
    assert [reject.code for reject in others] == ["not_object"] * 4


def test_every_hostile_item_is_data():
    for line in (CASES / "items" / "items_hostile.jsonl").read_bytes().splitlines():
        record = parse_record(line)
        assert isinstance(record, Record), (record, line[:80])
        assert json.loads(record.raw) == json.loads(line)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    argv, sys.argv = sys.argv, ["make_large.py", str(folder)]
    try:
        runpy.run_path(str(CASES / "make_large.py"))
    finally:
        sys.argv = argv
    return folder


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("item_5mb.jsonl", "too_large"),
        ("item_number_amplify.jsonl", "big_number"),
        ("item_deep_100k.jsonl", "too_deep"),
        ("item_100k_keys.jsonl", "too_large"),
        ("item_key_1mb.jsonl", "too_large"),
    ],
)
def test_each_large_item_is_one_reject(large, name, code):
    outcome = records_of(large / name)
    assert [record.code for record in outcome] == [code]


def test_200k_items_pass(large):
    outcome = records_of(large / "items_200k.jsonl")
    assert len(outcome) == 200_000
    assert all(isinstance(record, Record) for record in outcome)


@pytest.mark.parametrize(
    ("line", "verb"),
    [
        (b'{"a":1}', "item"),
        (b'item {"a":1}', "item"),
        (b'log {"level":"INFO","message":"x"}', "log"),
        (b"stat {}", "stat"),
        (b"request {}", "request"),
        (b"progress {}\r", "progress"),
        (b'output   {"a":1}', "output"),
        (b"finish {}", "finish"),
        (b"ITM {}", "item"),
        (b"LOG {}", "log"),
        (b"REQ {}", "request"),
        (b"STA {}", "stat"),
        (b"FIN {}", "finish"),
    ],
)
def test_verbs_of_both_dialects(line, verb):
    record = parse_record(line)
    assert isinstance(record, Record)
    assert record.verb == verb
    assert record.raw.startswith(b"{")
    assert record.raw.endswith(b"}")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'drop {"a":1}', "unknown_verb"),
        (b"hello world", "unknown_verb"),
        (b"@@CP {}", "not_json"),
        (b"item", "not_json"),
        (b"item [1]", "not_object"),
        (b"item null", "not_object"),
        (b'{"' + b"k" * 1025 + b'":1}', "long_key"),
        (b'{"a":[{"' + "中".encode() * 342 + b'":1}]}', "long_key"),
        (b'{"p":1e309}', "big_number"),
        (b'{"p":99e308}', "big_number"),
        (b'{"p":1e-400}', "big_number"),
        (b'{"p":1e-309}', "big_number"),
        (b'{"p":0.' + b"0" * 400 + b"1}", "big_number"),
        (b'{"p":' + b"1" * 200 + b"." + b"1" * 200 + b"}", "big_number"),
        (b'{"pad":"' + b"x" * 77 + b'","p":' + b"1" * 309 + b"}", "big_number"),
        (b'{"pad":"' + b"x" * 146 + b'","p":0.' + b"1" * 308 + b"}", "big_number"),
        (b'{"p":1e' + b"0" * 6000 + b"1234}", "big_number"),
        (b'{"p":[' + b",".join([b"1e300"] * 8000) + b"]}", "big_number"),
        (b'{"a":"\xed\xa0\x80"}', "bad_utf8"),
        (b'{"a":"\\udc00\\ud800"}', "surrogate"),
        (b'{"' + b"a\\u0000" + b'":1}', "nul"),
        (b'{"a":"' + b"x" * MAX_RECORD_BYTES + b'"}', "too_large"),
        (b"[" * 100_000, "not_object"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "too_deep"),
    ],
)
def test_what_cannot_be_stored_is_refused_with_a_sentence(line, code):
    reject = parse_record(line)
    assert isinstance(reject, Reject)
    assert reject.code == code
    assert reject.reason.endswith(".")


@pytest.mark.parametrize(
    "line",
    [
        b'{"t":"an escaped backslash before \\\\u0000 is text"}',
        b'{"t":"1e400 in text is text"}',
        b'{"p":1e308,"q":-1e-308,"r":' + b"1" * 300 + b"}",
        b'{"a":' * 64 + b"1" + b"}" * 64,
        b'{"t":"' + b"[" * 500 + b'\\""}',
        b'{"big":' + b"9" * 18 + b',"neg":-0.5,"pair":"\\ud83d\\ude00"}',
        b'{"k":"' + b"v" * 5000 + b'"}',
    ],
)
def test_what_only_looks_odd_is_accepted(line):
    assert isinstance(parse_record(line), Record)


def test_blank_lines_are_nothing():
    assert [parse_record(line) for line in (b"", b"   ", b"\t\r", b"\xef\xbb\xbf")] == [None] * 4


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(), json_values))
def test_any_json_object_is_kept_byte_for_byte_or_refused_for_nul(value):
    raw = json.dumps(value).encode()
    record = parse_record(raw)
    if isinstance(record, Reject):
        assert record.code in {"nul", "surrogate", "big_number"}
    else:
        assert record is not None
        assert record.raw == raw


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_raise(line):
    parse_record(line.replace(b"\n", b""))
    parse_record(b'{"a":' + line.replace(b"\n", b"") + b"}")


def test_items_pass_the_gate_fast():
    line = json.dumps({"n": 123456, "title": "A light in the attic", "price": 51.77, "url": "https://demo.test/x" * 3,
                       "tags": ["poetry", "children"], "pad": "x" * 110}).encode()  # fmt: skip
    assert 280 < len(line) < 320
    best = min(_seconds([line] * 3000) for _ in range(5))
    assert 3000 / best > 100_000, f"{3000 / best:,.0f} items/s"


def _seconds(lines: list[bytes]) -> float:
    started = time.process_time()
    for line in lines:
        parse_record(line)
    return time.process_time() - started
