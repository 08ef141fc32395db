"""Parameters with templates: filled in as their schema wants the values, or tried with samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import orjson

from apps.core.errors import PanelError
from apps.core.json_text import Path
from apps.core.schema_forms.coercion import as_type
from apps.core.schema_forms.resolving import resolved
from apps.core.schema_forms.texts import shown
from apps.core.schema_forms.validation import MAX_DEPTH, dotted
from apps.core.templating import TemplateFault, is_template, parse

# What becomes of a text: its value, UNKNOWN when only the run will know it. Raises TemplateFault.
Render = Callable[[str], Any]


class Unknown(Enum):
    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN


@dataclass(slots=True)
class Result:
    """`parameters` with values in the place of templates; `faults` by dotted path; `unknown` are places whose values
    nobody knows yet, where the template still stands."""

    parameters: dict[str, Any] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)
    unknown: list[Path] = field(default_factory=list)


def with_values(schema: Mapping[str, Any], parameters: Mapping[str, Any], render: Render) -> Result:
    """A text that becomes "12" is 12 where the schema wants a whole number, and so on for all types."""
    found = Result()
    known = schema.get("properties", {})
    for name, value in parameters.items():
        found.parameters[name] = _value(known.get(name), value, schema, (name,), render, found)
    return found


def _value(part: Any, value: Any, root: Mapping[str, Any], path: Path, render: Render, found: Result) -> Any:
    if len(path) > MAX_DEPTH:
        return value
    rule = resolved(part, root)
    if isinstance(value, dict):
        known, others = rule.get("properties", {}), rule.get("additionalProperties")
        return {
            name: _value(known.get(name, others), entry, root, (*path, name), render, found)
            for name, entry in value.items()
        }
    if isinstance(value, list):
        items = rule.get("items")
        return [_value(items, entry, root, (*path, index), render, found) for index, entry in enumerate(value)]
    if not is_template(value):
        return value
    try:
        filled = render(value)
    except TemplateFault as fault:
        found.faults[dotted(path)] = [fault.message]
        filled = UNKNOWN
    if filled is UNKNOWN:
        found.unknown.append(path)
        return value
    return fitted(rule, filled)


def fitted(rule: Mapping[str, Any], value: Any) -> Any:
    """The value as the type its schema asks for, where it can be read so."""
    choices = rule.get("enum")
    if isinstance(choices, list) and value not in choices:
        text = shown(value)
        return next((choice for choice in choices if shown(choice) == text), value)
    types = rule.get("type")
    if isinstance(value, str):
        return as_type(types, value)
    wanted = {types} if isinstance(types, str) else set(types or ())
    if isinstance(value, bool | int | float) and wanted and wanted <= {"string", "null"}:
        return orjson.dumps(value).decode()
    return value


def template_faults(value: Any) -> str:
    """What is wrong with the templates in a default of a schema; which names there are depends on the job."""
    todo = [value]
    while todo:
        part = todo.pop()
        if isinstance(part, dict | list):
            todo.extend(part.values() if isinstance(part, dict) else part)
        elif is_template(part):
            try:
                parse(part)
            except PanelError as error:
                return error.message
    return ""


def has_expressions(value: Any) -> bool:
    """Whether a default is only known once it is filled in."""
    if isinstance(value, dict | list):
        return any(map(has_expressions, value.values() if isinstance(value, dict) else value))
    try:
        return is_template(value) and bool(parse(value).expressions)
    except PanelError:
        return False
