"""Tables as people paste them or as spreadsheets save them: bytes to text, text to named cells."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from django.utils.translation import gettext as _

from apps.core.errors import Invalid

MOST_BYTES = 1024 * 1024
MOST_ROWS = 1000
MOST_COLUMNS = 200
# A cell may be as long as the whole table; the library's own bound is lower.
csv.field_size_limit(MOST_BYTES)
# In this order when a header fits several of them alike.
_DELIMITERS = ("\t", ",", ";")
# The first line by which some spreadsheets name the delimiter.
_NAMED_DELIMITER = re.compile(r"\Asep=([,;\t|])\r?\n", re.IGNORECASE)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class BadTable(Invalid):
    """It cannot be read as a table at all."""

    code = "bad_table"

    def __init__(self, message: str) -> None:
        super().__init__(message, fields={"table": [message]})


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as text. `lines` says where each row begins in what was read, from 1."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]


def decoded(content: bytes) -> str:
    """Text of a file: UTF-8 or UTF-16 with or without a mark, else GB18030 as Chinese spreadsheets save it."""
    if len(content) > MOST_BYTES:
        raise _too_long()
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return _tried(content[len(mark) :], (encoding,))
    if b"\0" in content:
        # Every second byte of what is mostly ASCII.
        little = content[1::2].count(0) > content[0::2].count(0)
        return _tried(content, ("utf-16-le",) if little else ("utf-16-be",))
    return _tried(content, ("utf-8", "gb18030"))


def _tried(content: bytes, encodings: tuple[str, ...]) -> str:
    for encoding in encodings:
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise BadTable(_("The characters of this file cannot be read. Save it as UTF-8."))


def _too_long() -> BadTable:
    return BadTable(_("This is more than %(kib)d KiB. Split it.") % {"kib": MOST_BYTES // 1024})


def read_table(text: str, *, known: Collection[str], column: str = "") -> Table:
    """The cells of a table whose first row names its columns; empty rows are left out.

    `known` are names that tell the delimiter. With `column` each line is a value of that column, unless the first
    line names known columns.
    """
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise _too_long()
    text = text.removeprefix("\ufeff")
    delimiter = ""
    skipped = 0
    if named := _NAMED_DELIMITER.match(text):
        delimiter, text, skipped = named[1], text[named.end() :], 1
    delimiter = delimiter or _delimiter_of(text, known)
    rows = [(skipped + line, cells) for line, cells in _rows(text, delimiter) if any(cell.strip() for cell in cells)]
    if not rows:
        raise BadTable(_("There is no row."))
    header = [cell.strip() for cell in rows[0][1]]
    if column and not {*header} & {*known}:
        # A list of values: a tab or a comma is part of one.
        plain = [(skipped + line, cells) for line, cells in _rows(text, "\0") if any(cell.strip() for cell in cells)]
        return _table((column,), plain)
    while header and not header[-1]:
        header.pop()
    _check_header(header)
    return _table(tuple(header), rows[1:])


def _table(columns: tuple[str, ...], rows: list[tuple[int, list[str]]]) -> Table:
    if not rows:
        raise BadTable(_("There is no row below the names of the columns."))
    if len(rows) > MOST_ROWS:
        counts = {"most": MOST_ROWS, "n": len(rows)}
        raise BadTable(_("A table has at most %(most)d rows; this one has %(n)d.") % counts)
    whole = []
    for number, (_line, cells) in enumerate(rows, 1):
        if any(cell.strip() for cell in cells[len(columns) :]):
            counts = {"row": number, "cells": len(cells), "columns": len(columns)}
            raise BadTable(_("Row %(row)d has %(cells)d cells, but there are %(columns)d columns.") % counts)
        whole.append((*cells[: len(columns)], *[""] * (len(columns) - len(cells))))
    return Table(columns, tuple(whole), tuple(line for line, _cells in rows))


def _check_header(header: list[str]) -> None:
    if not all(header):
        raise BadTable(_("Column %(n)d has no name in the first line.") % {"n": header.index("") + 1})
    if len(header) > MOST_COLUMNS:
        raise BadTable(_("A table has at most %(most)d columns.") % {"most": MOST_COLUMNS})
    if twice := [name for place, name in enumerate(header) if name in header[:place]]:
        raise BadTable(_("The column “%(name)s” is there twice.") % {"name": twice[0][:64]})


def _delimiter_of(text: str, known: Collection[str]) -> str:
    """The one by which the first line names most known columns, else gives most cells."""

    def fits(delimiter: str) -> tuple[int, int]:
        try:
            first = next((cells for _line, cells in _rows(text, delimiter) if any(map(str.strip, cells))), [])
        except BadTable:
            return -1, 0
        return len({cell.strip() for cell in first} & {*known}), len(first)

    return max(_DELIMITERS, key=fits)


def _rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Each row with the line it begins at."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            sentence = _("Line %(line)d cannot be read: a quote is not closed or stands inside a cell.")
            raise BadTable(sentence % {"line": line}) from error
        yield line, cells
