"""Parameters against their schema."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from copy import deepcopy
from typing import Any

import orjson
from django.utils.translation import gettext as _
from referencing.exceptions import Unresolvable

from apps.core.json_text import INT_MAX, Path
from apps.core.schema_forms.keywords import TooMuchWork, bounded, checker
from apps.core.schema_forms.patterns import BadPattern
from apps.core.schema_forms.resolving import resolved, strict
from apps.core.schema_forms.sentences import sentence

MAX_BYTES = 256 * 1024
MAX_DEPTH = 32
MAX_ERRORS = 100
# What materialises an absent optional object by its defaults looks this far down a schema that refers to itself.
_DEFAULTS_DEPTH = 8


def dotted(path: Path) -> str:
    return ".".join(map(str, path))


def is_secret(schema: Any) -> bool:
    return isinstance(schema, dict) and (schema.get("writeOnly") is True or schema.get("format") == "password")


def secret_names(schema: Mapping[str, Any]) -> frozenset[str]:
    """Parameters whose values are kept encrypted and reach the run as files."""
    properties = schema.get("properties", {})
    return frozenset(name for name, part in properties.items() if is_secret(resolved(part, schema)))


def split_secrets(schema: Mapping[str, Any], parameters: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain parameters, and those that are secrets: the second must not be stored or logged."""
    secret = secret_names(schema)
    plain = {name: value for name, value in parameters.items() if name not in secret}
    return plain, {name: value for name, value in parameters.items() if name in secret}


def unsafe(value: Any) -> dict[str, list[str]]:
    """What no schema can allow: values that PostgreSQL, JSON readers or our own pages would choke on."""
    faults: dict[str, list[str]] = {}
    todo: list[tuple[Path, Any]] = [((), value)]
    while todo and len(faults) < MAX_ERRORS:
        path, part = todo.pop()
        said = _unsafe_scalar(part)
        if len(path) > MAX_DEPTH:
            return {"": [_("This is nested more than %(depth)d levels deep.") % {"depth": MAX_DEPTH}]}
        if isinstance(part, dict):
            said = said or next((fault for key in part if (fault := _unsafe_scalar(key))), "")
            todo.extend(((*path, str(key)), entry) for key, entry in part.items())
        elif isinstance(part, list):
            todo.extend(((*path, index), entry) for index, entry in enumerate(part))
        if said:
            faults[dotted(path)] = [said]
    if not faults and len(orjson.dumps(value)) > MAX_BYTES:
        return {"": [_("These are more than %(kib)d KiB of parameters.") % {"kib": MAX_BYTES // 1024}]}
    return faults


def _unsafe_scalar(value: Any) -> str:
    if isinstance(value, str):
        if "\0" in value:
            return _("This holds a NUL character, which cannot be stored.")
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            return _("This holds half of a character (a lone surrogate), which cannot be stored.")
    elif isinstance(value, bool) or value is None or isinstance(value, dict | list):
        return ""
    elif isinstance(value, int):
        if abs(value) > INT_MAX:
            return _("This number has too many digits.")
    elif not isinstance(value, float) or not math.isfinite(value):
        return _("This is not a number that can be stored.")
    return ""


def validate(
    schema: Mapping[str, Any], parameters: Any, *, secrets: Collection[str] = (), unknown: Collection[Path] = ()
) -> dict[str, list[str]]:
    """Faults by dotted path, empty when all is well. Keys the schema does not name are faults, whatever it says.

    `secrets` are names of secret parameters that are set already, so that they may be missing here. What stands at the
    `unknown` places is not the value yet: nothing is said about it, or about what is around it as a whole.
    """
    if not isinstance(parameters, dict):
        return {"": [_("Parameters are an object with a value for each name.")]}
    faults = unsafe(parameters)
    if faults:
        return faults
    wanted = dict(strict(schema))
    wanted["required"] = [name for name in schema.get("required", ()) if name not in secrets]
    try:
        with bounded():
            for error in checker(wanted).iter_errors(parameters):
                if _touches(tuple(error.absolute_path), unknown):
                    continue
                said = faults.setdefault(dotted(tuple(error.absolute_path)), [])
                text = sentence(error)
                if text not in said:
                    said.append(text)
                if len(faults) >= MAX_ERRORS:
                    break
    except (TooMuchWork, RecursionError):
        return {"": [_("These parameters are too much to check against the schema of the spider.")]}
    except (Unresolvable, BadPattern):
        return {"": [_("The parameter schema of the spider is broken.")]}
    return faults


def _touches(path: Path, unknown: Collection[Path]) -> bool:
    return any(path[: len(place)] == place or place[: len(path)] == path for place in unknown)


def with_defaults(schema: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What a run gets: the parameters, with the schema's defaults for what they leave open."""
    return _filled(schema, dict(parameters), schema, 0)


def _filled(schema: Mapping[str, Any], values: dict[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    filled = dict(values)
    for name, raw in schema.get("properties", {}).items():
        part = resolved(raw, root)
        if is_secret(part):
            continue
        if name in values:
            filled[name] = _deep(part, values[name], root, depth + 1)
        elif "default" in part:
            filled[name] = deepcopy(part["default"])
        elif part.get("type") == "object" and depth < _DEFAULTS_DEPTH:
            # An object left out stands for its defaults, where these are enough for it.
            inner = _filled(part, {}, root, depth + 1)
            if inner and all(key in inner for key in part.get("required", ())):
                filled[name] = inner
    return filled


def _deep(part: Mapping[str, Any], value: Any, root: Mapping[str, Any], depth: int) -> Any:
    if depth > MAX_DEPTH:
        return value
    if isinstance(value, dict):
        return _filled(part, value, root, depth)
    if isinstance(value, list) and isinstance(part.get("items"), dict):
        items = resolved(part["items"], root)
        return [_deep(items, entry, root, depth + 1) for entry in value]
    return value
