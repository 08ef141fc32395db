"""Parameters as readable tables: what a schema asks for, and what values were given."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from apps.core.schema_forms import names_in_order
from apps.core.schema_forms.texts import choices_of, shown, text_of, title_of


@dataclass(frozen=True, slots=True)
class ParameterRow:
    name: str
    title: str
    help: str
    kind: str
    limits: str
    default: str
    required: bool


@dataclass(frozen=True, slots=True)
class ValueRow:
    """`text` is empty for a secret: its value is shown to nobody."""

    name: str
    title: str
    text: str
    long: bool = False
    secret: bool = False


def parameter_rows(schema: Mapping[str, Any]) -> list[ParameterRow]:
    """In the order of the schema."""
    required = schema.get("required") or ()
    return [
        ParameterRow(
            name=name,
            title=title_of(rule, name),
            help=text_of(rule, "description"),
            kind=_kind(rule),
            limits=_limits(rule),
            default="" if rule.get("default") in (None, "", []) else shown(rule["default"]),
            required=name in required,
        )
        for name, rule in _properties(schema).items()
    ]


def value_rows(schema: Mapping[str, Any], values: Mapping[str, Any], secrets: Collection[str] = ()) -> list[ValueRow]:
    """The given values in the schema's order, then those it does not know, then secrets as dots."""
    known = _properties(schema)
    order = [*(name for name in known if name in values), *(name for name in values if name not in known)]
    rows = []
    for name in order:
        text = _said(values[name])
        rows.append(ValueRow(name, title_of(known.get(name, {}), name), text, long="\n" in text or len(text) > 80))
    return rows + [ValueRow(name, title_of(known.get(name, {}), name), "", secret=True) for name in sorted(secrets)]


def _properties(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """A schema may be any JSON; only objects describe a parameter."""
    properties = schema.get("properties")
    found = properties if isinstance(properties, dict) else {}
    return {name: found[name] for name in names_in_order(schema) if isinstance(found[name], dict)}


def _said(value: Any) -> str:
    if value is True:
        return _("yes")
    if value is False:
        return _("no")
    if isinstance(value, list) and value and all(isinstance(each, (str, int, float)) for each in value):
        return ", ".join(str(each) for each in value)
    return shown(value)


def _kind(rule: Mapping[str, Any]) -> str:
    if rule.get("writeOnly") or rule.get("format") == "password":
        return _("secret")
    if choices_of(rule):
        return _("choice")
    formats = {
        "date": _("date"),
        "date-time": _("date and time"),
        "uri": _("address"),
        "email": _("e-mail address"),
    }
    if rule.get("format") in formats:
        return formats[str(rule["format"])]
    kinds = {
        "string": _("text"),
        "integer": _("whole number"),
        "number": _("number"),
        "boolean": _("yes or no"),
        "array": _("list"),
        "object": _("group"),
    }
    declared = rule.get("type")
    first = next((each for each in declared if each != "null"), "") if isinstance(declared, list) else declared
    return kinds.get(str(first), _("any value"))


def _limits(rule: Mapping[str, Any]) -> str:
    choices = choices_of(rule)
    if choices:
        return ", ".join(label for _value, label in choices[:12]) + ("…" if len(choices) > 12 else "")
    low, high = rule.get("minimum"), rule.get("maximum")
    if low is not None and high is not None:
        return _("%(low)s to %(high)s") % {"low": low, "high": high}
    if low is not None:
        return _("at least %(low)s") % {"low": low}
    if high is not None:
        return _("at most %(high)s") % {"high": high}
    return ""
