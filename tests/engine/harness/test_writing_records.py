"""Records as clawspider writes them: one line, one write, nothing that the panel would have to refuse."""

from __future__ import annotations

import datetime
import decimal
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from clawspider import RecordError, emit, output, progress, stat
from clawspider.records import MAX_RECORD_BYTES, encode

from apps.engine.records import Record, parse_record


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "records"
    monkeypatch.setenv("CLAW_RECORDS", str(path))
    return path


def test_each_verb_has_its_form(records: Path) -> None:
    emit({"a": 1})
    progress(3, 10, "page 3")
    progress(4)
    output("total", [1, 2])
    stat(pages=3, depth=1.5)
    assert records.read_text().splitlines() == [
        '{"a":1}',
        'progress {"done":3,"total":10,"text":"page 3"}',
        'progress {"done":4}',
        'output {"total":[1,2]}',
        'stat {"pages":3,"depth":1.5}',
    ]


def test_values_beyond_doubt_are_converted() -> None:
    at = datetime.datetime(2026, 11, 30, 12, 0, tzinfo=datetime.UTC)
    line = encode("item", {"at": at, "on": at.date(), "price": decimal.Decimal("9.90"), "tags": {"x"}, "pair": (1, 2)})
    assert json.loads(line) == {
        "at": "2026-11-30T12:00:00+00:00",
        "on": "2026-11-30",
        "price": "9.90",
        "tags": ["x"],
        "pair": [1, 2],
    }


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        ({"a": {"b": [0, object()]}}, "Field 'a.b[1]' is of type object, which cannot be written as JSON."),
        ({"a": b"x"}, "Field 'a' is of type bytes, which cannot be written as JSON."),
        ({"a": float("nan")}, "Field 'a' is nan, which JSON does not know."),
        ({"a": float("-inf")}, "Field 'a' is -inf, which JSON does not know."),
        ({"a": "x\0y"}, "Field 'a' holds a NUL character."),
        ({"a": {"k\0": 1}}, "Field name 'k\\x00' holds a NUL character."),
        ({"a": "\ud800"}, "Field 'a' holds half of a surrogate pair, which is not valid text."),
        ({"a": 2**64}, "Field 'a' is a number of more than 64 bits: write it as text."),
        ({("a",): 1}, "Field name ('a',) is not text."),
        ([1], "An item has to be a dict, not list."),
        (None, "An item has to be a dict, not NoneType."),
    ],
)
def test_what_cannot_be_written_is_refused_and_named(records: Path, item: Any, sentence: str) -> None:
    with pytest.raises(RecordError) as refused:
        emit(item)
    assert str(refused.value) == sentence
    assert not records.exists()


def test_a_value_that_holds_itself_is_refused(records: Path) -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(RecordError, match="nested too deep or holds itself"):
        emit({"loop": loop})


def test_a_record_of_one_mebibyte_is_written_and_one_byte_more_is_refused(records: Path) -> None:
    frame = len(encode("item", {"t": ""}))
    emit({"t": "x" * (MAX_RECORD_BYTES - frame)})
    assert records.stat().st_size == MAX_RECORD_BYTES
    with pytest.raises(RecordError, match="Its largest field is 't' with"):
        emit({"n": 1, "t": "x" * (MAX_RECORD_BYTES - frame + 1)})


def test_an_output_is_bounded(records: Path) -> None:
    with pytest.raises(RecordError, match="at most 65,536 are kept"):
        output("page", "x" * 70_000)


@pytest.mark.parametrize(
    "item",
    [
        {"a": "a \\u0000 that is only text", "digits": "1234567890123456789012"},
        {"ü": "日本語 \U0001f600 \u2028 \u202e", "deep": [{"n": [1, -1.5e10, None, True]}]},
        {"n": 2**64 - 1, "m": -(2**63), "f": 1e-300},
        {},
        {1: "a"},
    ],
)
def test_what_is_written_is_what_the_panel_accepts(item: Any) -> None:
    parsed = parse_record(encode("item", item).rstrip(b"\n"))
    assert isinstance(parsed, Record)
    assert parsed.obj == json.loads(json.dumps(item))


def test_records_of_many_threads_and_processes_do_not_mix(records: Path) -> None:
    def write(name: int) -> None:
        for n in range(200):
            emit({"from": name, "n": n, "pad": "x" * 5000})

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = [json.loads(line) for line in records.read_text().splitlines()]
    assert len(lines) == 800
    for name in range(4):
        assert [line["n"] for line in lines if line["from"] == name] == list(range(200))


def test_a_record_cut_by_a_full_disk_does_not_spoil_the_next(records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.write
    monkeypatch.setattr(os, "write", lambda number, line: whole(number, line[:5]))
    with pytest.raises(OSError, match="no space left"):
        emit({"n": 1})
    monkeypatch.setattr(os, "write", whole)
    emit({"n": 2})
    assert records.read_text().splitlines() == ['{"n":', '{"n":2}']
