"""JSON as people write it: parsed strictly, with the line of every fault and of every value."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, NoReturn

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.core.errors import Invalid

Path = tuple[str | int, ...]

INT_MAX = 2**63 - 1
# The end of the text closes an open string: without that, quotes without an end would be tried one by one.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)

_REASONS = {
    "Expecting ',' delimiter": gettext_lazy("a comma or a closing bracket is missing"),
    "Expecting property name enclosed in double quotes": gettext_lazy(
        "a key in double quotes is expected; there is no comma after the last entry"
    ),
    "Illegal trailing comma before end of object": gettext_lazy("there is no comma after the last entry"),
    "Illegal trailing comma before end of array": gettext_lazy("there is no comma after the last entry"),
    "Expecting ':' delimiter": gettext_lazy("a colon after the key is missing"),
    "Expecting value": gettext_lazy("a value is missing"),
    "Extra data": gettext_lazy("there is something after the end"),
    "Invalid control character at": gettext_lazy("a text holds a line break or control character"),
    "Unterminated string starting at": gettext_lazy("a text is not closed"),
    "Invalid \\escape": gettext_lazy("a backslash is followed by a wrong letter"),
    "Invalid \\uXXXX escape": gettext_lazy("\\u needs four hexadecimal digits"),
}


class BadJson(Invalid):
    """Text that is not the JSON we take; `line` and `column` count from 1, 0 is the whole text."""

    code = "bad_json"

    def __init__(self, reason: str, line: int = 0, column: int = 0) -> None:
        self.reason, self.line, self.column = reason, line, column
        place = _("line %(line)d, column %(column)d: ") % {"line": line, "column": column} if line else ""
        super().__init__(place + reason)


@dataclass(slots=True)
class _Level:
    path: Path
    is_array: bool
    key: str | int | None = None
    keys: set[str] = field(default_factory=set)


class _Refused(ValueError):
    pass


def _integer(digits: str) -> int:
    if len(digits) > 20 or abs(int(digits)) > INT_MAX:
        raise _Refused(_("a whole number has more than 18 digits"))
    return int(digits)


def _decimal(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise _Refused(_("a number is too large"))
    return number


def _constant(name: str) -> NoReturn:
    raise _Refused(_("%(name)s is not a JSON number") % {"name": name})


def parse_json(text: str, *, max_bytes: int, max_depth: int) -> Any:
    """The value of `text`. Sizes are checked before anything is built."""
    if len(text) > max_bytes or len(text.encode("utf-8", "surrogatepass")) > max_bytes:
        raise BadJson(_("more than %(kib)d KiB") % {"kib": max_bytes // 1024})
    positions = Positions(text, max_depth=max_depth)
    try:
        value = json.loads(text, parse_int=_integer, parse_float=_decimal, parse_constant=_constant)
    except json.JSONDecodeError as error:
        reason = str(_REASONS.get(error.msg, _("this is not JSON")))
        raise BadJson(reason, error.lineno, error.colno) from error
    except _Refused as error:
        raise BadJson(str(error)) from error
    except RecursionError as error:
        raise BadJson(_("nested too deeply")) from error
    if positions.doubled is not None:
        key, line, column = positions.doubled
        raise BadJson(_("the key “%(key)s” is there twice") % {"key": key}, line, column)
    return value


class Positions:
    """Where each key and each list entry of a JSON text begins. Says nothing sensible about text that is no JSON."""

    def __init__(self, text: str, *, max_depth: int) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._at: dict[Path, int] = {}
        self.doubled: tuple[str, int, int] | None = None
        self._read(text, max_depth)

    def line(self, path: Path) -> int:
        """The line of `path`, or of the nearest thing around it that exists."""
        while path and path not in self._at:
            path = path[:-1]
        return self._place(self._at.get(path, 0))[0]

    def _place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def _read(self, text: str, max_depth: int) -> None:
        stack: list[_Level] = []
        for match in _TOKEN.finditer(text):
            word, offset = match.group(), match.start()
            level = stack[-1] if stack else None
            if word in ("]", "}"):
                if stack:
                    stack.pop()
            elif word == ",":
                if level is not None:
                    level.key = level.key + 1 if isinstance(level.key, int) else None
            elif word == ":":
                continue
            elif level is not None and not level.is_array and level.key is None and word.startswith('"'):
                self._key(level, word, offset)
            else:
                self._value(stack, word, offset)
                if len(stack) > max_depth:
                    raise BadJson(
                        _("nested more than %(depth)d levels deep") % {"depth": max_depth}, *self._place(offset)
                    )

    def _key(self, level: _Level, word: str, offset: int) -> None:
        try:
            key = str(json.loads(word))
        except ValueError:
            key = word
        if key in level.keys and self.doubled is None:
            self.doubled = (key, *self._place(offset))
        level.keys.add(key)
        level.key = key
        self._at[(*level.path, key)] = offset

    def _value(self, stack: list[_Level], word: str, offset: int) -> None:
        path: Path = ()
        if stack:
            level = stack[-1]
            path = level.path if level.key is None else (*level.path, level.key)
            if level.is_array:
                self._at[path] = offset
        if word in ("[", "{"):
            stack.append(_Level(path, word == "[", 0 if word == "[" else None))
