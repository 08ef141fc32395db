"""Which schemas are taken, and what values they let through."""

from __future__ import annotations

import time
from typing import Any

import pytest

from apps.core.schema_forms import check_schema, split_secrets, validate, with_defaults


def wrap(part: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": part}, **more}


def nested(levels: int) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        part = {"type": "object", "properties": {"a": part}}
    return part


def unfolding(levels: int) -> dict[str, Any]:
    defs = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return wrap({"$ref": "#/$defs/d0"}, **{"$defs": {**defs, f"d{levels}": {"type": "string"}}})


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ([], ""),
        (None, ""),
        (True, ""),
        ({"type": "string"}, "/type"),
        ({"properties": {}}, "/type"),
        ({"type": "objekt"}, "/type"),
        (wrap({"type": "strin"}), "/properties/a/type"),
        (wrap({"minimum": "1"}), "/properties/a/minimum"),
        (wrap({"type": "string"}, required="a"), "/required"),
        ({"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"}, "/$schema"),
        (wrap({"$ref": "https://example.com/schema"}), "/properties/a/$ref"),
        (wrap({"$ref": "file:///etc/passwd"}), "/properties/a/$ref"),
        (wrap({"$ref": "#/$defs/none"}), "/properties/a/$ref"),
        (wrap({"$ref": "#anchor"}), "/properties/a/$ref"),
        (wrap({"$dynamicRef": "#x"}), "/properties/a/$dynamicRef"),
        (wrap({"$id": "https://example.com/"}), "/properties/a/$id"),
        (wrap({"allOf": [{"$ref": "#/properties/a"}]}), "/properties/a"),
        (wrap({}, allOf=[{"$ref": "#"}]), ""),
        (unfolding(30), "/properties/a"),
        (wrap({"type": "string", "pattern": "(?=x)"}), "/properties/a/pattern"),
        (wrap({"type": "string", "pattern": "(a)\\1"}), "/properties/a/pattern"),
        (wrap({"type": "string", "pattern": "("}), "/properties/a/pattern"),
        (wrap({"type": "string", "pattern": "a" * 201}), "/properties/a/pattern"),
        (wrap({"patternProperties": {"^x": {}}}), "/properties/a/patternProperties"),
        ({"type": "object", "properties": {"a.b": {}}}, "/properties/a.b"),
        ({"type": "object", "properties": {"../x": {}}}, "/properties/..~1x"),
        ({"type": "object", "properties": {"": {}}}, "/properties/"),
        (wrap({"type": "integer", "default": "x"}), "/properties/a/default"),
        (wrap({"type": "integer", "default": 10**30}), ""),
        (wrap({"type": "integer", "writeOnly": True}), "/properties/a"),
        (wrap({"type": "string", "writeOnly": True, "default": "hunter2"}), "/properties/a"),
        (wrap({"type": "array", "items": {"type": "string", "format": "password"}}), "/properties/a/items"),
        (wrap({"title": "\0"}), ""),
        (wrap({"title": "\ud800"}), ""),
        (wrap({"description": "x" * 300_000}), ""),
        (nested(100), ""),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_where_it_is_wrong(schema: Any, pointer: str) -> None:
    started = time.monotonic()
    faults = check_schema(schema)

    assert pointer in [fault.pointer for fault in faults], faults
    assert all(fault.message for fault in faults)
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        wrap({"type": "string", "pattern": "^[\\u4e00-\\u9fa5]+$"}),
        wrap({"type": "string", "pattern": "^[^,]+(,[^,]+)*$"}),
        wrap(
            {"$ref": "#/$defs/tree"},
            **{"$defs": {"tree": {"type": "object", "properties": {"kid": {"$ref": "#/$defs/tree"}}}}},
        ),
        wrap({"type": "string", "writeOnly": True}, required=["a"]),
        wrap({"x-unknown": 1, "type": ["string", "null"]}),
    ],
)
def test_a_sensible_schema_is_taken(schema: Any) -> None:
    assert check_schema(schema) == []


@pytest.mark.parametrize("evil", ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_no_pattern_takes_long_on_any_text(evil: str) -> None:
    schema = wrap({"type": "string", "pattern": evil})
    assert check_schema(schema) == []
    started = time.monotonic()

    validate(schema, {"a": "a" * 100_000 + "!"})

    assert time.monotonic() - started < 1


def test_a_pattern_with_escaped_chinese_letters_works() -> None:
    schema = wrap({"type": "string", "pattern": "^[\\u4e00-\\u9fa5]+$"})

    assert validate(schema, {"a": "爬虫"}) == {}
    assert validate(schema, {"a": "spider"})


def test_work_that_doubles_with_each_level_is_cut_off() -> None:
    tree = {"properties": {"k": {"$ref": "#/$defs/t"}}, "allOf": [{"properties": {"k": {"$ref": "#/$defs/t"}}}]}
    schema = wrap({"$ref": "#/$defs/t"}, **{"$defs": {"t": tree}})
    value: dict[str, Any] = {}
    for _ in range(28):
        value = {"k": value}
    started = time.monotonic()

    assert list(validate(schema, {"a": value})) == [""]
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("schema", "parameters", "path"),
    [
        ({"type": "object"}, {"x": 1}, "x"),
        ({"type": "object", "additionalProperties": True}, {"x": 1}, "x"),
        (wrap({"type": "object", "properties": {"b": {}}}), {"a": {"c": 1}}, "a.c"),
        (wrap({"type": "array", "items": {"properties": {"b": {}}}}), {"a": [{}, {"c": 1}]}, "a.1.c"),
        (wrap({"$ref": "#/$defs/o"}, **{"$defs": {"o": {"properties": {"b": {}}}}}), {"a": {"c": 1}}, "a.c"),
    ],
)
def test_unknown_keys_are_refused_although_the_schema_does_not_say_so(
    schema: dict[str, Any], parameters: Any, path: str
) -> None:
    assert list(validate(schema, parameters)) == [path]


def test_keys_that_a_schema_builds_from_parts_are_known() -> None:
    schema = wrap({"allOf": [{"properties": {"b": {}}}, {"properties": {"c": {}}}]}, anyOf=[{"required": ["a"]}])

    assert validate(schema, {"a": {"b": 1, "c": 2}}) == {}
    assert list(validate(schema, {"a": {"d": 1}})) == ["a.d"]


def test_an_object_may_say_itself_that_it_takes_any_key() -> None:
    assert validate(wrap({"type": "object", "additionalProperties": {"type": "string"}}), {"a": {"x": "y"}}) == {}


@pytest.mark.parametrize(
    "value",
    ["a\0b", "\ud800", 2**63, -(2**70), float("nan"), float("inf"), {"\0": 1}, {"\udfff": 1}, ["\0"], b"bytes", {1, 2}],
)
def test_what_cannot_be_stored_is_refused_whatever_the_schema_says(value: Any) -> None:
    assert validate(wrap({}), {"a": value})


def test_parameters_are_bounded_in_size_and_depth() -> None:
    deep: Any = 1
    for _ in range(33):
        deep = [deep]

    assert list(validate(wrap({}), {"a": deep})) == [""]
    assert list(validate(wrap({}), {"a": "x" * (256 * 1024)})) == [""]
    assert list(validate(wrap({}), [])) == [""]


def test_no_sentence_quotes_the_validator() -> None:
    schema = {
        "type": "object",
        "required": ["r"],
        "dependentRequired": {"s": ["q"]},
        "properties": {
            "s": {
                "type": "string",
                "minLength": 3,
                "maxLength": 2,
                "pattern": "x",
                "format": "ipv4",
                "enum": ["q"],
                "const": "z",
            },
            "n": {
                "minimum": 5,
                "exclusiveMaximum": 1,
                "multipleOf": 0.1,
                "not": {},
                "anyOf": [False],
                "oneOf": [{}, {}],
            },
            "l": {"minItems": 3, "uniqueItems": True, "contains": {"const": 9}, "prefixItems": [{}], "items": False},
            "o": {"minProperties": 3, "propertyNames": {"maxLength": 0}},
            "d": {"type": "string", "format": "date"},
            "r": {},
            "q": {},
        },
    }
    faults = validate(schema, {"s": "ab", "n": 2.05, "l": [1, 1.0], "o": {"k": 1}, "d": "30.11.2026"})

    said = " ".join(sentence for sentences in faults.values() for sentence in sentences)
    assert set(faults) >= {"s", "n", "l", "d", "r", "q"}
    assert not any(
        word in said for word in ("'", "instance", "schema", "valid under", "does not match", "is not of type")
    )


def test_decimal_steps_are_exact() -> None:
    schema = wrap({"type": "number", "multipleOf": 0.1})

    assert validate(schema, {"a": 0.3}) == {}
    assert validate(schema, {"a": 0.35})
    assert validate(schema, {"a": 1e300}) == {}


def test_a_long_list_is_checked_for_doubles_in_linear_time() -> None:
    schema = wrap({"type": "array", "uniqueItems": True})
    started = time.monotonic()

    assert validate(schema, {"a": [{"n": n} for n in range(10_000)]}) == {}
    assert validate(schema, {"a": [1, True, "1", 1.5]}) == {}
    assert validate(schema, {"a": [{"x": 1, "y": 2}, {"y": 2, "x": 1.0}]})
    assert time.monotonic() - started < 2


def test_secrets_are_told_from_plain_parameters() -> None:
    schema = {
        "type": "object",
        "properties": {"k": {"$ref": "#/$defs/k"}, "u": {}},
        "$defs": {"k": {"type": "string", "format": "password"}},
    }

    assert split_secrets(schema, {"k": "x", "u": 1}) == ({"u": 1}, {"k": "x"})


def test_defaults_are_filled_in_at_every_level_and_not_shared() -> None:
    schema = wrap(
        {
            "type": "object",
            "properties": {
                "b": {"default": [1]},
                "c": {"type": "object", "required": ["x"], "properties": {"x": {}, "y": {"default": 2}}},
            },
        },
    )
    filled = with_defaults(schema, {})
    filled["a"]["b"].append(2)

    assert filled == {"a": {"b": [1, 2]}}
    assert with_defaults(schema, {"a": {"c": {"x": 1}}}) == {"a": {"b": [1], "c": {"x": 1, "y": 2}}}
