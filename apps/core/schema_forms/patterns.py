"""Regular expressions of schemas, matched by RE2 in linear time: a careless pattern must not hang the panel."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import re2

MAX_PATTERN = 200
_UNICODE_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u([0-9A-Fa-f]{4})")


class BadPattern(ValueError):
    """Not an expression RE2 takes; it has no look-around and no back references."""


@lru_cache(maxsize=512)
def compiled(pattern: str) -> Any:
    if len(pattern) > MAX_PATTERN:
        raise BadPattern(pattern[:20])
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1 << 20
    try:
        # JSON Schema writes \u4e00 where RE2 wants \x{4e00}.
        return re2.compile(_UNICODE_ESCAPE.sub(r"\1\\x{\2}", pattern), options)  # type: ignore[no-untyped-call]
    except re2.error as error:
        raise BadPattern(pattern) from error


def matches(pattern: str, text: str) -> bool:
    """Found anywhere in `text`, as JSON Schema wants it."""
    return compiled(pattern).search(text) is not None
