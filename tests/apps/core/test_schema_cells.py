"""Parameters from cells of a table."""

from __future__ import annotations

from typing import Any

import pytest

from apps.core.schema_forms import BadCell, Cells

SCHEMA = {
    "type": "object",
    "properties": {
        "keyword": {"type": "string"},
        "day": {"type": "string", "format": "date"},
        "pages": {"type": "integer"},
        "rate": {"type": ["number", "null"]},
        "deep": {"type": "boolean"},
        "sort": {"enum": ["new", "old"], "x-enum-titles": ["Newest first", "Oldest first"]},
        "level": {"enum": [1, 2, None]},
        "words": {"type": "array", "items": {"type": "string"}},
        "counts": {"type": "array", "items": {"type": "integer"}},
        "kinds": {"type": "array", "items": {"enum": ["a", "b"]}},
        "filter": {"type": "object", "properties": {"min": {"type": "integer"}}},
        "any": {},
        "token": {"type": "string", "writeOnly": True},
    },
}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("keyword", " sea ", " sea "),
        ("keyword", "007", "007"),
        ("keyword", "=SUM(A1)", "=SUM(A1)"),
        ("day", " 2026-11-30 ", "2026-11-30"),
        ("pages", " 12 ", 12),
        ("pages", "12.0", 12),
        ("pages", "\uff11\uff12", 12),
        ("pages", "{{ upstream.a.count }}", "{{ upstream.a.count }}"),
        ("rate", "-1.5e3", -1500.0),
        ("deep", "TRUE", True),
        ("deep", "0", False),
        ("deep", "是", True),
        ("sort", "old", "old"),
        ("sort", "Newest first", "new"),
        ("level", "2", 2),
        ("words", "a\nb, c\n", ["a", "b, c"]),
        ("words", '["a", "b"]', ["a", "b"]),
        ("counts", "1\n2", [1, 2]),
        ("kinds", "a\nb", ["a", "b"]),
        ("filter", '{"min": 3}', {"min": 3}),
        ("any", '{"x": [1]}', {"x": [1]}),
    ],
)
def test_a_cell_is_typed_by_the_schema(name: str, text: str, value: Any) -> None:
    read = Cells(SCHEMA).read(name, text)

    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pages", "many"),
        ("pages", "1.5"),
        ("rate", "1,5"),
        ("deep", "perhaps"),
        ("sort", "Best first"),
        ("level", "3"),
        ("words", "[1"),
        ("counts", "1\nx"),
        ("kinds", "a\nz"),
        ("filter", "min"),
        ("filter", "{'min': 3}"),
        ("any", "x"),
    ],
)
def test_what_is_no_value_is_told_in_a_sentence(name: str, text: str) -> None:
    with pytest.raises(BadCell) as excinfo:
        Cells(SCHEMA).read(name, text)

    assert " " in excinfo.value.message


def test_a_table_may_not_hold_secrets() -> None:
    cells = Cells(SCHEMA)

    assert cells.secrets == {"token"}
    assert "token" not in cells.names
