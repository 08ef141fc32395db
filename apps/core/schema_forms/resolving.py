"""References inside a schema, and our rule that unknown keys are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

COMPOSING = ("allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "patternProperties", "$ref")
# Where schemas lie inside a schema: by name, in a list, alone. const, default, enum and examples hold values.
MAPS = ("properties", "$defs", "dependentSchemas")
LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
SINGLES = (
    "items", "contains", "not", "if", "then", "else", "additionalProperties",
    "unevaluatedProperties", "unevaluatedItems", "propertyNames", "contentSchema",
)  # fmt: skip
_MAX_HOPS = 16


def target_of(reference: Any, root: Mapping[str, Any]) -> Any:
    """What `#/…` points at, None when nothing is there."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    found: Any = root
    for raw in reference[1:].split("/")[1:]:
        key = unquote(raw).replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return found


def resolved(schema: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """`schema` with what its `$ref` points at laid under its own keywords; what cannot be followed stays."""
    part: dict[str, Any] = dict(schema) if isinstance(schema, dict) else {}
    for _hop in range(_MAX_HOPS):
        if "$ref" not in part:
            break
        target = target_of(part["$ref"], root)
        if not isinstance(target, dict):
            break
        own = {key: value for key, value in part.items() if key != "$ref"}
        part = {**target, **own}
    return part


def strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with unknown keys refused where it does not say so itself; at the top whatever it says."""
    closed: dict[str, Any] = _closed(schema)
    if closed.get("additionalProperties") is not False:
        closed.pop("additionalProperties", None)
        closed["unevaluatedProperties"] = False
    if isinstance(schema.get("$defs"), dict):
        closed["$defs"] = {name: _inside(part) for name, part in schema["$defs"].items()}
    return closed


def _inside(schema: Any) -> Any:
    """The parts of a schema closed, the schema itself left open: others may build on it."""
    if not isinstance(schema, dict):
        return schema
    changed = dict(schema)
    if isinstance(schema.get("properties"), dict):
        changed["properties"] = {name: _closed(part) for name, part in schema["properties"].items()}
    if isinstance(schema.get("items"), dict):
        changed["items"] = _closed(schema["items"])
    return changed


def _closed(schema: Any) -> Any:
    changed = _inside(schema)
    if not isinstance(changed, dict) or "additionalProperties" in changed or "unevaluatedProperties" in changed:
        return changed
    if any(keyword in changed for keyword in COMPOSING):
        changed["unevaluatedProperties"] = False
    elif "properties" in changed:
        changed["additionalProperties"] = False
    return changed
