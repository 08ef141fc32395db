"""Texts as the types a schema asks for: a table, a template or another program often has only texts."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from apps.core.json_text import INT_MAX
from apps.core.schema_forms.resolving import resolved
from apps.core.schema_forms.validation import MAX_DEPTH

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,300}(?:\.[0-9]{0,300})?|\.[0-9]{1,300})(?:[eE][+-]?[0-9]{1,3})?")
_WORDS = {"true": True, "false": False}


def coerced(schema: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with "12" as 12 where the schema wants an integer and takes no text; also inside of objects and
    lists. What cannot be read so stays as it is, for the check against the schema to name it."""
    return _inside(schema, dict(parameters), schema, 0)


def _inside(part: Mapping[str, Any], values: dict[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    known = part.get("properties", {})
    others = part.get("additionalProperties")
    return {name: _value(known.get(name, others), value, root, depth + 1) for name, value in values.items()}


def _value(schema: Any, value: Any, root: Mapping[str, Any], depth: int) -> Any:
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return value
    part = resolved(schema, root)
    if isinstance(value, str):
        return as_type(part.get("type"), value)
    if isinstance(value, dict):
        return _inside(part, value, root, depth)
    if isinstance(value, list):
        return [_value(part.get("items"), entry, root, depth + 1) for entry in value]
    return value


def as_type(types: Any, text: str) -> Any:
    """The text as one of the types, by their names in JSON Schema; the text itself where it fits none of them."""
    wanted = {types} if isinstance(types, str) else set(types or ())
    if not wanted or "string" in wanted:
        return text
    if wanted & {"integer", "number"} and _INTEGER.fullmatch(text) and abs(int(text)) <= INT_MAX:
        return int(text)
    if "number" in wanted and _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    if "boolean" in wanted and text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if "null" in wanted and text in ("", "null"):
        return None
    return text
