"""CSV that a spreadsheet opens as data: no cell is ever a formula, and null differs from the empty text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

BOM = b"\xef\xbb\xbf"
# Also in their full-width forms: East Asian spreadsheets take those as well.
_FORMULA_STARTS = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
# The semicolon too: where it is the list separator, a spreadsheet would cut an unquoted cell there.
_QUOTED_FOR = frozenset(',;"\n\r')


def safe_text(text: str) -> str:
    """The text with a leading apostrophe if a spreadsheet could run it. Space before a formula does not hide it."""
    head = text.lstrip()[:1]
    return f"'{text}" if (head in _FORMULA_STARTS and head) or text[:1] in ("\t", "\r") else text


def safe_cell(value: Any) -> str:
    """A JSON value as one CSV field. Numbers stay numbers; lists and objects become JSON."""
    if value is None:
        return ""
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal):
        return str(value)
    if isinstance(value, str):
        text = safe_text(value)
        return _quoted(text) if not text or not _QUOTED_FOR.isdisjoint(text) else text
    return _quoted(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))


def csv_line(values: Iterable[Any]) -> str:
    return ",".join(map(safe_cell, values)) + "\r\n"


def csv_lines(columns: Sequence[str], rows: Iterable[dict[str, Any]], *, for_excel: bool = False) -> Iterator[bytes]:
    """A whole file. `for_excel` begins with a BOM, without which Excel misreads everything but ASCII."""
    yield (BOM if for_excel else b"") + csv_line(columns).encode("utf-8", "replace")
    for row in rows:
        yield csv_line(row.get(column) for column in columns).encode("utf-8", "replace")


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
