"""Templates inside of objects and lists: every text is one, names of properties are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from apps.core.templating.language import is_template

Where = tuple[str | int, ...]
MAX_DEPTH = 64


def each_text(value: Any, where: Where = ()) -> Iterator[tuple[Where, str]]:
    """The texts with templates, and where they stand."""
    todo: list[tuple[Where, Any]] = [(where, value)]
    while todo:
        place, part = todo.pop()
        if isinstance(part, str):
            if is_template(part):
                yield place, part
        elif len(place) <= MAX_DEPTH and isinstance(part, dict):
            todo.extend(((*place, str(name)), entry) for name, entry in reversed(part.items()))
        elif len(place) <= MAX_DEPTH and isinstance(part, list | tuple):
            todo.extend(((*place, index), entry) for index, entry in reversed(list(enumerate(part))))


def replaced(value: Any, by: Callable[[Where, str], Any], where: Where = ()) -> Any:
    """A copy in which `by` has taken the place of every text with a template."""
    if is_template(value):
        return by(where, value)
    if len(where) > MAX_DEPTH:
        return value
    if isinstance(value, dict):
        return {name: replaced(entry, by, (*where, str(name))) for name, entry in value.items()}
    if isinstance(value, list):
        return [replaced(entry, by, (*where, index)) for index, entry in enumerate(value)]
    return value
