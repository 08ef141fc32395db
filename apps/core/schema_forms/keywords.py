"""JSON Schema's keywords as we check them: bounded work, no network, one error for each key that is at fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from typing import Any

import orjson
from jsonschema import Draft202012Validator
from jsonschema._utils import find_additional_properties, find_evaluated_property_keys_by_schema
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from referencing import Registry

from apps.core.schema_forms.formats import FORMATS
from apps.core.schema_forms.patterns import matches

Errors = Iterator[ValidationError]
Keyword = Callable[[Any, Any, Any, Any], Errors | None]

# A schema may be built so that the work doubles with each level; this is about a second. Following a reference is the
# dearest step, and what makes work grow.
MAX_STEPS = 100_000
_COSTS = {"$ref": 20, "unevaluatedProperties": 20, "unevaluatedItems": 20}
_steps: ContextVar[int] = ContextVar("steps", default=0)


class TooMuchWork(Exception):
    """Checking this value against this schema costs more than it may."""


@contextmanager
def bounded() -> Iterator[None]:
    token = _steps.set(0)
    try:
        yield
    finally:
        _steps.reset(token)


def _counted(name: str, check: Keyword) -> Keyword:
    cost = _COSTS.get(name, 1)

    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Errors:
        done = _steps.get() + cost
        if done > MAX_STEPS:
            raise TooMuchWork
        _steps.set(done)
        return check(validator, value, instance, schema) or iter(())

    return counted


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Errors:
    if validator.is_type(instance, "string") and not matches(pattern, instance):
        yield ValidationError("pattern")


def _required(validator: Any, names: list[str], instance: Any, schema: Any) -> Errors:
    if validator.is_type(instance, "object"):
        yield from (ValidationError("required", path=(name,)) for name in names if name not in instance)


def _dependent_required(validator: Any, rules: Mapping[str, list[str]], instance: Any, schema: Any) -> Errors:
    if validator.is_type(instance, "object"):
        missing = {name for given, names in rules.items() if given in instance for name in names} - instance.keys()
        yield from (ValidationError("dependentRequired", path=(name,)) for name in sorted(missing))


def _additional(validator: Any, rule: Any, instance: Any, schema: Any) -> Errors:
    if rule is not False:
        yield from Draft202012Validator.VALIDATORS["additionalProperties"](validator, rule, instance, schema) or ()
    elif validator.is_type(instance, "object"):
        extra = sorted(set(find_additional_properties(instance, schema)))
        yield from (ValidationError("additionalProperties", path=(name,)) for name in extra)


def _unevaluated(validator: Any, rule: Any, instance: Any, schema: Any) -> Errors:
    if rule is not False:
        yield from Draft202012Validator.VALIDATORS["unevaluatedProperties"](validator, rule, instance, schema) or ()
    elif validator.is_type(instance, "object"):
        known = set(find_evaluated_property_keys_by_schema(validator, instance, schema))
        yield from (ValidationError("unevaluatedProperties", path=(name,)) for name in sorted(instance.keys() - known))


def _canonical(value: Any) -> Any:
    """JSON Schema takes 1 and 1.0 as equal, but not 1 and true."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value)
    if isinstance(value, list):
        return [_canonical(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _canonical(entry) for key, entry in value.items()}
    return value


def _unique(validator: Any, wanted: bool, instance: Any, schema: Any) -> Errors:
    """In linear time; the library compares each with each."""
    if wanted and validator.is_type(instance, "array"):
        distinct = {orjson.dumps(_canonical(entry), option=orjson.OPT_SORT_KEYS) for entry in instance}
        if len(distinct) < len(instance):
            yield ValidationError("uniqueItems")


def _multiple(validator: Any, step: float, instance: Any, schema: Any) -> Errors:
    """Exact: with floats 0.3 would be no multiple of 0.1."""
    if validator.is_type(instance, "number") and Fraction(repr(instance)) % Fraction(repr(step)):
        yield ValidationError("multipleOf")


_OURS: dict[str, Keyword] = {
    "pattern": _pattern,
    "required": _required,
    "dependentRequired": _dependent_required,
    "additionalProperties": _additional,
    "unevaluatedProperties": _unevaluated,
    "uniqueItems": _unique,
    "multipleOf": _multiple,
}
_Checker: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {name: _counted(name, check) for name, check in {**Draft202012Validator.VALIDATORS, **_OURS}.items()},
)


def checker(schema: Mapping[str, Any]) -> Validator:
    """A validator that opens no address: only references inside the schema resolve."""
    validator: Validator = _Checker(schema, registry=Registry(), format_checker=FORMATS)
    return validator
