"""Texts become what the schema asks for, or stay what they are."""

from __future__ import annotations

from typing import Any

import pytest

from apps.core.schema_forms import coerced

SCHEMA = {
    "type": "object",
    "properties": {
        "pages": {"type": "integer"},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "note": {"type": "string"},
        "either": {"type": ["string", "integer"]},
        "maybe": {"type": ["integer", "null"]},
        "ids": {"type": "array", "items": {"$ref": "#/$defs/count"}},
        "shop": {"type": "object", "properties": {"floor": {"$ref": "#/$defs/count"}}},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "open": {},
    },
    "$defs": {"count": {"type": "integer"}},
}


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("pages", "12", 12),
        ("pages", "-3", -3),
        ("pages", "9223372036854775807", 2**63 - 1),
        ("pages", "9223372036854775808", "9223372036854775808"),
        ("pages", "1" * 5000, "1" * 5000),
        ("pages", "1.0", "1.0"),
        ("pages", "0x1f", "0x1f"),
        ("pages", "1_000", "1_000"),
        ("pages", "١٢", "١٢"),
        ("pages", " 12", " 12"),
        ("pages", "", ""),
        ("pages", "null", "null"),
        ("pages", True, True),
        ("ratio", "12", 12),
        ("ratio", "0.5", 0.5),
        ("ratio", "1e3", 1000.0),
        ("ratio", "1e999", "1e999"),
        ("ratio", "nan", "nan"),
        ("ratio", "inf", "inf"),
        ("deep", "true", True),
        ("deep", "False", False),
        ("deep", "1", "1"),
        ("note", "12", "12"),
        ("either", "12", "12"),
        ("maybe", "12", 12),
        ("maybe", "null", None),
        ("maybe", "", None),
        ("ids", ["1", 2, "x"], [1, 2, "x"]),
        ("ids", "1", "1"),
        ("shop", {"floor": "3", "name": "5"}, {"floor": 3, "name": "5"}),
        ("counts", {"a": "1"}, {"a": 1}),
        ("open", "12", "12"),
        ("unknown", "12", "12"),
    ],
)
def test_a_text_becomes_what_the_schema_asks_for(name: str, given: Any, wanted: Any) -> None:
    found = coerced(SCHEMA, {name: given})[name]
    assert found == wanted
    assert type(found) is type(wanted)


def test_a_schema_that_refers_to_itself_ends_with_the_value() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"in": {"$ref": "#"}, "n": {"type": "integer"}}}
    value: dict[str, Any] = {"n": "1"}
    for _ in range(20):
        value = {"in": value, "n": "1"}
    found = coerced(schema, value)
    for _ in range(20):
        assert found["n"] == 1
        found = found["in"]
    assert found == {"n": 1}
