"""Write records: one line, one `write` to a descriptor opened for append, at most 1 MiB.

Without CLAW_RECORDS (on a laptop) records go to stdout.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
import os
import re
import sys
import uuid
from typing import Any, Mapping

MAX_RECORD_BYTES = 1024 * 1024
MAX_OUTPUT_BYTES = 64 * 1024
_SUSPECT = re.compile(rb"\\u0000|[0-9]{19}")  # worth a closer look: most records have neither
_LINE = "%s %s\n"


class RecordError(ValueError):
    """A record cannot be written; the sentence names the field and what is wrong with it."""


class _Descriptor:
    """Where records go; opened at the first record and kept."""

    def __init__(self) -> None:
        self.path: str | None = None
        self.number = -1
        self.torn = False

    def write(self, line: bytes) -> None:
        path = os.environ.get("CLAW_RECORDS", "")
        if not path:
            sys.stdout.flush()
            _write_all(1, line)
            return
        if path != self.path:
            self.number = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
            self.path, self.torn = path, False
        if self.torn:
            line = b"\n" + line
        written = os.write(self.number, line)
        self.torn = written < len(line)
        if self.torn:
            raise OSError(f"Only {written} of {len(line)} bytes of a record could be written: no space left?")


_descriptor = _Descriptor()


def write(verb: str, record: Mapping[str, Any]) -> None:
    """Append one record; raises `RecordError` when it holds what cannot be stored."""
    _descriptor.write(encode(verb, record))


def write_lines(lines: bytes) -> None:
    """Append records that `encode` made, several in one write."""
    _descriptor.write(lines)


def on_laptop() -> bool:
    return not os.environ.get("CLAW_RECORDS")


def emit(item: Mapping[str, Any]) -> None:
    """Store one item."""
    if not isinstance(item, Mapping):
        raise RecordError(f"An item has to be a dict, not {_kind(item)}.")
    write("item", item)


def progress(done: float, total: float | None = None, text: str = "") -> None:
    """Say how far the crawl is: the run's page shows it."""
    record: dict[str, Any] = {"done": done}
    if total is not None:
        record["total"] = total
    if text:
        record["text"] = text
    write("progress", record)


def output(name: str, value: Any) -> None:
    """Set a named result of the run; jobs that follow can use it as a parameter."""
    line = encode("output", {name: value})
    if len(line) > MAX_OUTPUT_BYTES:
        raise RecordError(f"Output {name!r} has {len(line):,} bytes; at most {MAX_OUTPUT_BYTES:,} are kept.")
    _descriptor.write(line)


def stat(**values: float) -> None:
    """Set counters of the run to these values."""
    write("stat", values)


def encode(verb: str, record: Mapping[str, Any]) -> bytes:
    """The line of one record; items go without their verb."""
    try:
        text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
        line = (text + "\n" if verb == "item" else _LINE % (verb, text)).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordError(_fault(record) or f"The record cannot be written as JSON: {error}.") from error
    if _SUSPECT.search(line):
        fault = _fault(record)
        if fault:
            raise RecordError(fault)
    if len(line) > MAX_RECORD_BYTES:
        raise RecordError(_too_large(record, len(line)))
    return line


def _write_all(number: int, line: bytes) -> None:
    while line:
        line = line[os.write(number, line) :]


def _plain(value: Any) -> Any:
    """JSON form of the few non-JSON types whose meaning is beyond doubt."""
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (decimal.Decimal, uuid.UUID)):
        return str(value)
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(_kind(value))


def _fault(value: Any, field: str = "", depth: int = 0) -> str:
    """One sentence about the first field that cannot be stored; empty when all can."""
    if depth > 200:
        return f"Field {field!r} is nested too deep or holds itself."
    if isinstance(value, Mapping):
        return _first_fault(
            ((key, child, f"{field}.{key}" if field else str(key)) for key, child in value.items()), depth
        )
    if isinstance(value, (list, tuple, set, frozenset)):
        return _first_fault((("", child, f"{field}[{place}]") for place, child in enumerate(value)), depth)
    problem = _problem(value)
    return f"Field {field!r} {problem}." if problem else ""


def _first_fault(children: Any, depth: int) -> str:
    for key, child, path in children:
        if not (key is None or isinstance(key, (str, int, float))):
            return f"Field name {key!r} is not text."
        if isinstance(key, str) and _problem(key):
            return f"Field name {key!r} {_problem(key)}."
        fault = _fault(child, path, depth + 1)
        if fault:
            return fault
    return ""


def _problem(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, str):
        return _text_problem(value)
    if isinstance(value, int):
        return "" if -(2**63) <= value < 2**64 else "is a number of more than 64 bits: write it as text"
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"is {value}, which JSON does not know"
    try:
        _plain(value)
    except TypeError:
        return f"is of type {_kind(value)}, which cannot be written as JSON"
    return ""


def _text_problem(text: str) -> str:
    if "\0" in text:
        return "holds a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "holds half of a surrogate pair, which is not valid text"
    return ""


def _kind(value: Any) -> str:
    return type(value).__name__


def _too_large(record: Mapping[str, Any], size: int) -> str:
    sizes: tuple[tuple[int, str], ...] = tuple(
        (len(json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace")), str(name))
        for name, value in record.items()
    )
    largest, name = max(sizes)
    return (
        f"The record has {size:,} bytes; at most {MAX_RECORD_BYTES:,} are allowed. "
        f"Its largest field is {name!r} with {largest:,} bytes."
    )
