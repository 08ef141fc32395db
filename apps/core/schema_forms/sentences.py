"""What is wrong with a value, in a sentence of our own for each keyword of JSON Schema."""

from __future__ import annotations

from collections.abc import Callable

from django.utils.translation import gettext as _
from jsonschema.exceptions import ValidationError

from apps.core.schema_forms.texts import shown

Sentence = Callable[[ValidationError], str]


def _type(error: ValidationError) -> str:
    names = {
        "string": _("a text"),
        "integer": _("a whole number"),
        "number": _("a number"),
        "boolean": _("yes or no"),
        "array": _("a list"),
        "object": _("an object"),
        "null": _("nothing"),
    }
    wanted = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
    return _("This must be %(type)s.") % {"type": _(" or ").join(names.get(str(name), str(name)) for name in wanted)}


def _format(error: ValidationError) -> str:
    return {
        "date": _("Enter a date as year-month-day, for example 2026-11-30."),
        "date-time": _("Enter date and time with a zone, for example 2026-11-30T13:00:00Z."),
        "time": _("Enter a time with a zone, for example 13:00:00Z."),
        "duration": _("Enter a duration as in P1DT12H."),
        "email": _("Enter an e-mail address."),
        "uri": _("Enter a complete address such as https://example.com/ without spaces or special letters."),
        "iri": _("Enter a complete address such as https://example.com/."),
        "hostname": _("Enter a host name."),
        "ipv4": _("Enter an IPv4 address."),
        "ipv6": _("Enter an IPv6 address."),
        "uuid": _("Enter a UUID."),
        "regex": _("Enter a regular expression without look-around and back references."),
    }.get(str(error.validator_value), _("This does not have the expected form."))


def _pattern(error: ValidationError) -> str:
    examples = error.schema.get("examples") if isinstance(error.schema, dict) else None
    if isinstance(examples, list) and examples:
        return _("This does not have the expected form. For example: %(example)s") % {"example": shown(examples[0])}
    return _("This does not have the expected form.")


def _min_length(error: ValidationError) -> str:
    if error.validator_value == 1:
        return _("This must not be empty.")
    return _("This must have at least %(limit)s characters.") % {"limit": error.validator_value}


def _enum(error: ValidationError) -> str:
    values = error.validator_value if isinstance(error.validator_value, list) else []
    if 0 < len(values) <= 12:
        return _("Choose one of: %(values)s.") % {"values": ", ".join(map(shown, values))}
    return _("Choose one of the given values.")


def _limit(template: Callable[[], str]) -> Sentence:
    return lambda error: template() % {"limit": shown(error.validator_value)}


def _plain(template: Callable[[], str]) -> Sentence:
    return lambda error: template()


def _no_form_fits() -> str:
    return _("This fits none of the allowed forms.")


_SENTENCES: dict[str, Sentence] = {
    "type": _type,
    "format": _format,
    "pattern": _pattern,
    "minLength": _min_length,
    "enum": _enum,
    "const": _limit(lambda: _("This must be %(limit)s.")),
    "maxLength": _limit(lambda: _("This must have at most %(limit)s characters.")),
    "minimum": _limit(lambda: _("This must be at least %(limit)s.")),
    "maximum": _limit(lambda: _("This must be at most %(limit)s.")),
    "exclusiveMinimum": _limit(lambda: _("This must be more than %(limit)s.")),
    "exclusiveMaximum": _limit(lambda: _("This must be less than %(limit)s.")),
    "multipleOf": _limit(lambda: _("This must be a multiple of %(limit)s.")),
    "minItems": _limit(lambda: _("At least %(limit)s entries are needed.")),
    "maxItems": _limit(lambda: _("At most %(limit)s entries are allowed.")),
    "minProperties": _limit(lambda: _("At least %(limit)s values are needed.")),
    "maxProperties": _limit(lambda: _("At most %(limit)s values are allowed.")),
    "uniqueItems": _plain(lambda: _("Each entry may be there only once.")),
    "contains": _plain(lambda: _("A needed entry is missing.")),
    "minContains": _plain(lambda: _("A needed entry is missing.")),
    "maxContains": _plain(lambda: _("There are too many entries of one kind.")),
    "items": _plain(lambda: _("There are more entries than allowed.")),
    "unevaluatedItems": _plain(lambda: _("There are more entries than allowed.")),
    "propertyNames": _plain(lambda: _("A name in here is not allowed.")),
    "not": _plain(lambda: _("This value is not allowed.")),
    "anyOf": _plain(_no_form_fits),
    "required": _plain(lambda: _("This is needed.")),
    "dependentRequired": _plain(lambda: _("This is needed together with the other values.")),
    "additionalProperties": _plain(lambda: _("There is no parameter of this name.")),
    "unevaluatedProperties": _plain(lambda: _("There is no parameter of this name.")),
    "oneOf": _plain(lambda: _("This must fit exactly one of the allowed forms.")),
}


def sentence(error: ValidationError) -> str:
    """Never the library's own words: those are English and quote the schema."""
    keyword = str(error.validator)
    return _SENTENCES[keyword](error) if keyword in _SENTENCES else _no_form_fits()
