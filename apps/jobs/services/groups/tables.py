"""A pasted table as rows of parameters, each cell with what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from apps.core.actors import Actor
from apps.core.errors import Invalid
from apps.core.pasted_tables import BadTable, read_table
from apps.core.schema_forms import BadCell, Cells
from apps.jobs.models import Job
from apps.jobs.services.groups.inputs import check_inputs
from apps.jobs.services.groups.starting import MOST_FAULTY
from apps.jobs.services.parameters import needed_version


@dataclass(frozen=True, slots=True)
class InputCell:
    text: str
    faults: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class InputRow:
    """`line` is where it begins in what was pasted; `faults` are those of no cell of it."""

    number: int
    line: int
    cells: Sequence[InputCell]
    faults: Sequence[str] = ()

    @property
    def wrong(self) -> bool:
        return bool(self.faults) or any(cell.faults for cell in self.cells)


@dataclass(frozen=True, slots=True)
class InputTable:
    """`values` are the rows as `start_inputs` takes them; `faults` is empty when all of them fit."""

    columns: Sequence[str]
    rows: Sequence[InputRow]
    values: Sequence[dict[str, Any]]
    faults: dict[str, list[str]] = field(default_factory=dict)

    @property
    def wrong_rows(self) -> list[InputRow]:
        return [row for row in self.rows if row.wrong]


def columns_of(job: Job) -> list[str]:
    """Parameters that a table may have as its columns."""
    return Cells(needed_version(job).parameter_schema).names


def list_column(job: Job, asked: str = "") -> str:
    """Which parameter a list without a name is of: the one asked for, or the only one there is."""
    names = columns_of(job)
    if asked and asked not in names:
        sentence = _("There is no parameter “%(name)s” that a table may hold.") % {"name": asked[:64]}
        raise Invalid(sentence, fields={"column": [sentence]})
    return asked or (names[0] if len(names) == 1 else "")


def table_of_inputs(*, job: Job, text: str, column: str = "", by: Actor, now: datetime) -> InputTable:
    """Reads, types and checks; raises Invalid only where it is no table of this job's parameters at all."""
    reader = Cells(needed_version(job).parameter_schema)
    table = read_table(text, known=reader.names, column=list_column(job, column))
    _check_columns(reader, table.columns)
    values: list[dict[str, Any]] = []
    faults: dict[str, list[str]] = {}
    for number, cells in enumerate(table.rows, 1):
        row: dict[str, Any] = {}
        for name, cell in zip(table.columns, cells, strict=True):
            try:
                reader.put(row, name, cell)
            except BadCell as error:
                faults[f"rows.{number}.{name}"] = [error.message]
        values.append(row)
    if len(faults) < MOST_FAULTY:
        # A cell that could not be read is missing as well: one sentence is enough.
        faults = {**check_inputs(job=job, rows=values, by=by, now=now), **faults}
    by_row = _by_row(faults)
    rows = [
        _row(number, line, table.columns, cells, by_row.get(number, {}))
        for number, (line, cells) in enumerate(zip(table.lines, table.rows, strict=True), 1)
    ]
    return InputTable(table.columns, rows, values, faults)


def _check_columns(reader: Cells, columns: Sequence[str]) -> None:
    known = ", ".join(reader.names)
    for name in columns:
        if name in reader.secrets:
            raise BadTable(_("“%(name)s” is a secret: it cannot be part of a table.") % {"name": name})
        if name not in reader.names:
            sentence = _("There is no parameter “%(name)s”. The first line names the columns, of: %(known)s.")
            raise BadTable(sentence % {"name": name[:64], "known": known})


def _by_row(faults: dict[str, list[str]]) -> dict[int, dict[str, list[str]]]:
    """`rows.3.pages` as pages of row 3."""
    found: dict[int, dict[str, list[str]]] = {}
    for path, sentences in faults.items():
        _rows, number, inner = [*path.split(".", 2), ""][:3]
        if number.isdecimal():
            found.setdefault(int(number), {})[inner] = sentences
    return found


def _row(number: int, line: int, columns: Sequence[str], cells: Sequence[str], said: dict[str, list[str]]) -> InputRow:
    placed: dict[str, list[str]] = {}
    for inner, sentences in said.items():
        name = next((each for each in columns if inner == each or inner.startswith(f"{each}.")), "")
        # A parameter that is no column has no cell: its name is said.
        told = [f"{inner}: {each}" for each in sentences] if inner and not name else sentences
        placed.setdefault(name, []).extend(told)
    found = [InputCell(text, placed.get(name, ())) for name, text in zip(columns, cells, strict=True)]
    return InputRow(number, line, found, placed.get("", ()))
