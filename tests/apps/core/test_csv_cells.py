"""No exported cell is a formula, and nothing is lost."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.core.csv_cells import BOM, csv_lines, safe_cell
from apps.core.visible_text import visible_text

CASES = Path(__file__).parents[2] / "cases"
CELLS = [json.loads(line) for line in (CASES / "lists" / "csv_cells.jsonl").read_text().split("\n") if line.strip()]
HOSTILE = [
    json.loads(line) for line in (CASES / "items" / "items_hostile.jsonl").read_text().split("\n") if line.strip()
]


@pytest.mark.parametrize("case", CELLS, ids=lambda case: repr(case["in"]))
def test_a_cell_is_written_as_listed(case: dict[str, Any]) -> None:
    assert safe_cell(case["in"]) == case["csv"]


@given(st.text())
def test_no_text_opens_as_a_formula(text: str) -> None:
    back = next(csv.reader(io.StringIO(safe_cell(text) + "\r\n", newline="")), [""])[0]

    assert back.lstrip()[:1] not in set("=+-@＝＋－＠") or back.lstrip() == ""  # noqa: RUF001 (the full-width forms)
    assert back in (text, f"'{text}")


def test_numbers_stay_numbers() -> None:
    assert [safe_cell(value) for value in (-5, -0.25, Decimal("12.50"), 10**30)] == [
        "-5",
        "-0.25",
        "12.50",
        str(10**30),
    ]


def test_headers_are_cells_too() -> None:
    assert b"".join(csv_lines(["=cmd|x", "b"], [{"b": 1}])) == b"'=cmd|x,b\r\n,1\r\n"


def test_the_file_for_excel_begins_with_its_mark() -> None:
    assert next(csv_lines(["中"], [], for_excel=True)) == BOM + "中\r\n".encode()
    assert not next(csv_lines(["中"], [])).startswith(BOM)


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: case["case"])
def test_a_hostile_item_is_one_record_without_formula(case: dict[str, Any]) -> None:
    columns = list(case["data"])
    text = b"".join(csv_lines(columns, [case["data"]])).decode()
    header, record = csv.reader(io.StringIO(text, newline=""))

    assert len(header) == len(record) == len(columns)
    for value, cell in zip(case["data"].values(), record, strict=True):
        if isinstance(value, str):
            assert cell in (value, f"'{value}")
            assert cell.lstrip()[:1] not in ("=", "+", "-", "@")


def test_control_and_direction_characters_become_visible() -> None:
    assert visible_text("a\x01b\x1b[31m\r\x7f\x85") == "a␁b␛[31m␍␡‹U+0085›"  # noqa: RUF001 (the marks we use)
    assert visible_text("abc\u202egpj.exe") == "abc‹U+202E›gpj.exe"  # noqa: RUF001 (the marks we use)
    assert visible_text("tab\tline\nend 👩‍🚀 中文") == "tab\tline\nend 👩‍🚀 中文"
