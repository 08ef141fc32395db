"""Which parameters a body holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

MOST_MAPPED = 100
LONGEST_PATH = 200


@dataclass(frozen=True, slots=True)
class Taken:
    """`ignored` are names that the spider has no parameter for, `missing` the parameters whose path led nowhere."""

    values: dict[str, Any] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def taken_from(*, body: Mapping[str, Any], mapping: Mapping[str, str], known: Collection[str]) -> Taken:
    """By the body's own names or, where there is a mapping, by that alone."""
    if not mapping:
        values = {name: value for name, value in body.items() if name in known}
        return Taken(values, ignored=[name for name in body if name not in known])
    taken = Taken(ignored=[name for name in mapping if name not in known])
    for name, path in mapping.items():
        if name not in known:
            continue
        try:
            taken.values[name] = _followed(body, path.split("."))
        except LookupError:
            taken.missing.append(name)
    return taken


def _followed(value: Any, path: Iterable[str]) -> Any:
    """Into objects by name, into lists by number; LookupError where nothing is there."""
    for step in path:
        if isinstance(value, Mapping):
            value = value[step]
        elif isinstance(value, list) and step.isascii() and step.isdigit() and len(step) < 7:
            value = value[int(step)]
        else:
            raise LookupError(step)
    return value


def mapping_faults(*, mapping: Any, known: Collection[str]) -> dict[str, list[str]]:
    """What is wrong with {parameter: dotted path in the body}, by place."""
    if not isinstance(mapping, Mapping):
        return {"mapping": [_("A mapping is an object: a path in the body for each parameter.")]}
    if len(mapping) > MOST_MAPPED:
        return {"mapping": [_("A mapping has at most %(most)d parameters.") % {"most": MOST_MAPPED}]}
    faults = {}
    for name, path in mapping.items():
        if name not in known:
            faults[f"mapping.{name}"] = [_("The spider has no parameter %(name)s.") % {"name": str(name)[:64]}]
        elif not _is_path(path):
            faults[f"mapping.{name}"] = [_("A path is made of names and numbers with dots between: “commit.author.0”.")]
    return faults


def _is_path(path: Any) -> bool:
    return isinstance(path, str) and len(path) <= LONGEST_PATH and path.isprintable() and all(path.split("."))
