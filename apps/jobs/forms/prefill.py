"""Parameters of a job from the address of its form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.http import QueryDict

PREFIX = "param."


def prefilled(query: QueryDict, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters from `?param.name=value`: texts as they are, several or comma-parted for a list, the rest as JSON."""
    properties = schema.get("properties")
    rules: dict[str, Any] = properties if isinstance(properties, dict) else {}
    values: dict[str, Any] = {}
    for key in query:
        name = key.removeprefix(PREFIX)
        rule = rules.get(name)
        if not key.startswith(PREFIX) or not isinstance(rule, dict) or rule.get("writeOnly"):
            continue
        given = query.getlist(key)
        if rule.get("type") == "array":
            parts = given if len(given) > 1 else given[0].split(",")
            values[name] = [_typed(part.strip(), rule.get("items") or {}) for part in parts if part.strip()]
        else:
            values[name] = _typed(given[-1], rule)
    return values


def _typed(text: str, rule: Any) -> Any:
    """A text that is no JSON stays one: the form shows it and says what is wrong."""
    if not isinstance(rule, dict) or rule.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
