"""The order of properties. PostgreSQL's jsonb forgets it, so it is written down where a schema is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.core.schema_forms.resolving import LISTS, MAPS, SINGLES

ORDER = "x-order"


def with_order(schema: Any) -> Any:
    """The schema with the names of each `properties` listed beside it."""
    if not isinstance(schema, dict):
        return schema
    ordered = dict(schema)
    for keyword in MAPS:
        if isinstance(schema.get(keyword), dict):
            ordered[keyword] = {name: with_order(part) for name, part in schema[keyword].items()}
    for keyword in LISTS:
        if isinstance(schema.get(keyword), list):
            ordered[keyword] = [with_order(part) for part in schema[keyword]]
    for keyword in SINGLES:
        if keyword in schema:
            ordered[keyword] = with_order(schema[keyword])
    if isinstance(schema.get("properties"), dict):
        ordered.setdefault(ORDER, list(schema["properties"]))
    return ordered


def names_in_order(schema: Mapping[str, Any]) -> list[str]:
    """The properties' names as their author wrote them down."""
    properties = schema.get("properties")
    names = list(properties) if isinstance(properties, dict) else []
    order = schema.get(ORDER)
    if not isinstance(order, list):
        return names
    known = [name for name in order if isinstance(name, str) and name in names]
    return list(dict.fromkeys([*known, *names]))
