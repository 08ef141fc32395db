"""Which schemas we take: valid JSON Schema 2020-12, self-contained, bounded, with names that can be drawn."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from django.utils.translation import gettext as _
from jsonschema import Draft202012Validator
from jsonschema_specifications import REGISTRY

from apps.core.json_text import Path
from apps.core.schema_forms.keywords import TooMuchWork, bounded, checker
from apps.core.schema_forms.patterns import MAX_PATTERN, BadPattern, compiled
from apps.core.schema_forms.resolving import LISTS, MAPS, SINGLES, resolved, strict, target_of
from apps.core.schema_forms.sentences import sentence
from apps.core.schema_forms.templates import has_expressions, template_faults
from apps.core.schema_forms.validation import MAX_BYTES, is_secret, unsafe

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAX_SCHEMA_DEPTH = 64
MAX_IN_PLACE = 500
PROPERTY_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}\Z")

_IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_IN_PLACE_SINGLE = ("not", "if", "then", "else")
_REFUSED = (
    "$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor", "$vocabulary",
    "patternProperties",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SchemaFault:
    """`path` leads to the place in the schema, `pointer` is the same as a JSON pointer."""

    path: Path
    message: str

    @property
    def pointer(self) -> str:
        return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in self.path)


def check_schema(schema: Any, *, for_items: bool = False) -> list[SchemaFault]:
    """What speaks against a parameter schema (or, less strict, an item schema). Empty: it can be used."""
    if not isinstance(schema, dict):
        return [SchemaFault((), _("A schema is an object."))]
    too_big = _size_faults(schema)
    if too_big:
        return too_big
    faults = [*_metaschema_faults(schema)]
    if faults:
        return faults
    if not for_items and schema.get("type") != "object":
        faults.append(SchemaFault(("type",), _("A parameter schema has “type”: “object” at the top.")))
    for path, part in _parts(schema, ()):
        faults.extend(_part_faults(path, part, schema, for_items))
    if not faults:
        faults.extend(_loop_faults(schema))
    if not faults and not for_items:
        faults.extend(_secret_faults(schema))
        faults.extend(_default_faults(schema))
    return faults


def _size_faults(schema: dict[str, Any]) -> list[SchemaFault]:
    if _depth(schema) > MAX_SCHEMA_DEPTH:
        return [
            SchemaFault((), _("The schema is nested more than %(depth)d levels deep.") % {"depth": MAX_SCHEMA_DEPTH})
        ]
    try:
        size = len(orjson.dumps(schema))
    except (TypeError, ValueError):
        return [SchemaFault((), _("The schema holds a text or number that cannot be stored."))]
    if size > MAX_BYTES:
        return [SchemaFault((), _("The schema is larger than %(kib)d KiB.") % {"kib": MAX_BYTES // 1024})]
    if b"\\u0000" in orjson.dumps(schema):
        return [SchemaFault((), _("The schema holds a text or number that cannot be stored."))]
    return []


def _depth(value: Any) -> int:
    deepest, todo = 0, [(value, 1)]
    while todo and deepest <= MAX_SCHEMA_DEPTH:
        part, depth = todo.pop()
        deepest = max(deepest, depth)
        inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        todo.extend((entry, depth + 1) for entry in inner)
    return deepest


def _metaschema_faults(schema: dict[str, Any]) -> Iterator[SchemaFault]:
    dialect = schema.get("$schema", DIALECT)
    if not isinstance(dialect, str) or dialect.rstrip("#") != DIALECT:
        yield SchemaFault(
            ("$schema",), _("Write the schema for JSON Schema 2020-12 (%(dialect)s).") % {"dialect": DIALECT}
        )
        return
    judge = Draft202012Validator(Draft202012Validator.META_SCHEMA, registry=REGISTRY)
    for error in judge.iter_errors(schema):
        path = tuple(error.absolute_path)
        if path and path[-1] == "type":
            names = "array, boolean, integer, null, number, object, string"
            yield SchemaFault(path, _("“type” must be one of: %(names)s.") % {"names": names})
        else:
            yield SchemaFault(path, _("This is not JSON Schema: %(why)s") % {"why": sentence(error)})


def _parts(schema: Any, path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every subschema; not what lies in const, default, enum and examples, which are values."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for keyword in MAPS:
        inner = schema.get(keyword)
        for name, part in inner.items() if isinstance(inner, dict) else ():
            yield from _parts(part, (*path, keyword, name))
    for keyword in LISTS:
        for index, part in enumerate(schema.get(keyword) or ()):
            yield from _parts(part, (*path, keyword, index))
    for keyword in SINGLES:
        yield from _parts(schema.get(keyword), (*path, keyword))


def _part_faults(path: Path, part: dict[str, Any], root: dict[str, Any], for_items: bool) -> Iterator[SchemaFault]:
    for keyword in _REFUSED:
        if keyword in part:
            yield SchemaFault((*path, keyword), _("%(keyword)s is not supported.") % {"keyword": keyword})
    reference = part.get("$ref")
    if reference is not None and not isinstance(target_of(reference, root), dict | bool):
        yield SchemaFault((*path, "$ref"), _("$ref must point to a part of the same schema, as in #/$defs/name."))
    pattern = part.get("pattern")
    if pattern is not None and (len(pattern) > MAX_PATTERN or not _compiles(pattern)):
        yield SchemaFault(
            (*path, "pattern"),
            _("A pattern has at most %(limit)d characters and works without look-around and back references (RE2).")
            % {"limit": MAX_PATTERN},
        )
    if "patternProperties" in part:
        yield SchemaFault(
            (*path, "patternProperties"), _("%(keyword)s is not supported.") % {"keyword": "patternProperties"}
        )
    for name in part.get("properties", {}) if not for_items else ():
        if not PROPERTY_NAME.match(name):
            yield SchemaFault(
                (*path, "properties", name),
                _("A parameter's name has 1 to 64 of A-Z, a-z, 0-9, _ and -, and begins with a letter or _."),
            )


def _compiles(pattern: str) -> bool:
    try:
        compiled(pattern)
    except BadPattern:
        return False
    return True


def _in_place(part: Any, root: Mapping[str, Any]) -> list[Any]:
    """The schemas that apply to the same value as `part` does."""
    if not isinstance(part, dict):
        return []
    found = [entry for keyword in _IN_PLACE_LISTS for entry in part.get(keyword) or ()]
    found += [part[keyword] for keyword in _IN_PLACE_SINGLE if keyword in part]
    found += list(part.get("dependentSchemas", {}).values())
    if "$ref" in part:
        found.append(target_of(part["$ref"], root))
    return found


def _loop_faults(schema: dict[str, Any]) -> Iterator[SchemaFault]:
    """References that come back to where they began without going into the value, or that double and double."""
    costs: dict[int, int] = {}

    def cost(part: Any, above: frozenset[int]) -> int:
        if id(part) in above:
            return MAX_IN_PLACE + 1
        if id(part) not in costs:
            inside = above | {id(part)}
            costs[id(part)] = 1 + sum(cost(entry, inside) for entry in _in_place(part, schema))
        return costs[id(part)]

    for path, part in _parts(schema, ()):
        if cost(part, frozenset()) > MAX_IN_PLACE:
            yield SchemaFault(path, _("The references of this schema go round in a circle or unfold too far."))
            return


def _secret_faults(schema: dict[str, Any]) -> Iterator[SchemaFault]:
    top = {("properties", name) for name in schema.get("properties", {})}
    referred = {target_id for name in schema.get("properties", {}) if (target_id := _direct(schema, name))}
    for path, part in _parts(schema, ()):
        if not is_secret(part):
            continue
        if path not in top and path not in referred:
            yield SchemaFault(path, _("A secret is a parameter of its own, not inside a list or object."))
        elif part.get("type") != "string" or part.keys() & {"enum", "const", "default", "examples"}:
            yield SchemaFault(path, _("A secret has “type”: “string” and neither default, examples nor given values."))


def _direct(schema: dict[str, Any], name: str) -> Path | None:
    """Where `#/$defs/…` of a top-level property points to."""
    part = schema["properties"][name]
    reference = part.get("$ref", "") if isinstance(part, dict) else ""
    return ("$defs", reference.removeprefix("#/$defs/")) if reference.startswith("#/$defs/") else None


def _default_faults(schema: dict[str, Any]) -> Iterator[SchemaFault]:
    closed = strict(schema)
    validator = checker(closed)
    for path, part in _parts(schema, ()):
        if "default" not in part:
            continue
        value = part["default"]
        if wrong := template_faults(value):
            yield SchemaFault((*path, "default"), wrong)
            continue
        if has_expressions(value):
            continue
        try:
            with bounded():
                fits = not unsafe({"": value}) and validator.evolve(schema=resolved(part, schema)).is_valid(value)
        except (TooMuchWork, RecursionError):
            fits = False
        if not fits:
            yield SchemaFault((*path, "default"), _("The default does not satisfy its own schema."))
