"""From a schema to its controls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.core.schema_forms.containers import ArrayControl, ObjectControl
from apps.core.schema_forms.controls import (
    BooleanControl,
    CheckboxesControl,
    ChoiceControl,
    Control,
    JsonControl,
    NumberControl,
    SecretControl,
    TextControl,
)
from apps.core.schema_forms.ordering import names_in_order
from apps.core.schema_forms.resolving import COMPOSING, resolved
from apps.core.schema_forms.texts import choices_of
from apps.core.schema_forms.validation import is_secret

# A schema may refer to itself: below this the value is edited as JSON.
MAX_DRAWN_DEPTH = 6
_NOT_DRAWN = (*COMPOSING, "prefixItems", "contains", "not", "propertyNames", "unevaluatedItems")


def build(schema: Mapping[str, Any]) -> ObjectControl:
    """The controls of a whole parameter schema."""
    return _object(schema, schema, "", required=True, depth=0)


def _object(
    part: Mapping[str, Any], root: Mapping[str, Any], name: str, *, required: bool, depth: int
) -> ObjectControl:
    needed = part.get("required", ())
    properties = part.get("properties", {})
    controls = [
        _control(properties[key], root, key, required=key in needed, depth=depth + 1) for key in names_in_order(part)
    ]
    return ObjectControl(part, controls, name=name, required=required)


def _control(raw: Any, root: Mapping[str, Any], name: str, *, required: bool, depth: int) -> Control:
    part = resolved(raw, root)
    kind = _kind(part)
    if depth == 1 and is_secret(part):
        return SecretControl(part, name=name, required=required)
    if choices_of(part) is not None:
        return ChoiceControl(part, name=name, required=required)
    if kind == "string":
        return TextControl(part, name=name, required=required)
    if kind in ("integer", "number"):
        return NumberControl(part, name=name, required=required)
    if kind == "boolean":
        return BooleanControl(part, name=name, required=required)
    if depth <= MAX_DRAWN_DEPTH and not any(keyword in part for keyword in _NOT_DRAWN):
        if kind == "array":
            return _array(part, root, name, required=required, depth=depth)
        if kind == "object" and part.get("properties") and part.get("additionalProperties", False) is False:
            return _object(part, root, name, required=required, depth=depth)
    return JsonControl(part, name=name, required=required)


def _array(part: Mapping[str, Any], root: Mapping[str, Any], name: str, *, required: bool, depth: int) -> Control:
    items = resolved(part.get("items"), root)
    if choices_of(items) is not None:
        return CheckboxesControl(part, items, name=name, required=required)
    item = _control(items, root, "", required=True, depth=depth + 1)
    if isinstance(item, TextControl | NumberControl | ObjectControl):
        return ArrayControl(part, item, name=name, required=required)
    return JsonControl(part, name=name, required=required)


def _kind(part: Mapping[str, Any]) -> str:
    """The one type beside null; "" when there are several."""
    kinds = part.get("type")
    if isinstance(kinds, list):
        others = [kind for kind in kinds if kind != "null"]
        return str(others[0]) if len(others) == 1 else ""
    if kinds is None and "properties" in part:
        return "object"
    return str(kinds or "")
