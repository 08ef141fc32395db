"""JSON bodies, taken strictly: what PostgreSQL, another parser or a crawl would choke on is refused here in words."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext as _
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser

MAX_DEPTH = 64
# Digits of the largest integer that jsonb and every client keep exactly.
MAX_INTEGER = 2**63 - 1
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# A lone surrogate cannot be encoded, a NUL cannot be stored.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class BodyTooLarge(APIException):
    """A request bigger than the limit; read no further than that."""

    status_code = 400
    default_code = "too_large"


class StrictJSONParser(BaseParser):
    """Parses one JSON object of storable text and finite numbers."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise BodyTooLarge(_("The body is larger than %(limit)s bytes.") % {"limit": limit})
        value = load(body)
        if not isinstance(value, dict):
            raise ParseError(_("The body must be a JSON object."))
        return value


def load(body: bytes) -> Any:
    """The value of a JSON text, or ParseError with a sentence that says what is wrong with it."""
    if body.startswith(BYTE_ORDER_MARK):
        raise ParseError(_("The body begins with a byte order mark; send plain UTF-8."))
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ParseError(_("The body is not UTF-8 (byte %(position)s).") % {"position": error.start}) from error
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_bounded)
    except json.JSONDecodeError as error:
        raise ParseError(
            _("The body is not JSON: line %(line)s, column %(column)s.") % {"line": error.lineno, "column": error.colno}
        ) from error
    except RecursionError as error:
        raise _too_deep() from error
    _check(value)
    return value


def _check(value: Any) -> None:
    """Walk without recursion: the depth is the caller's to choose."""
    stack: list[tuple[Any, int]] = [(value, 1)]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, str):
            _check_text(node)
        elif isinstance(node, dict | list):
            if depth > MAX_DEPTH:
                raise _too_deep()
            if isinstance(node, dict):
                for key in node:
                    _check_text(key)
                node = list(node.values())
            stack.extend((child, depth + 1) for child in node)


def _check_text(text: str) -> None:
    found = UNSTORABLE.search(text)
    if found is None:
        return
    if found.group() == "\x00":
        raise ParseError(_("Text must not contain the NUL character (\\u0000)."))
    raise ParseError(_("Text must not contain half of a surrogate pair (\\ud800 to \\udfff)."))


def _refuse_constant(name: str) -> Any:
    raise ParseError(_("%(name)s is not JSON; send a number or null.") % {"name": name})


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ParseError(_("A number is too large."))
    return number


def _bounded(digits: str) -> int:
    # The length first: Python refuses to convert thousands of digits, and would take long over fewer.
    if len(digits) > 20 or abs(int(digits)) > MAX_INTEGER:
        raise ParseError(_("An integer is too large: at most 19 digits, up to 9223372036854775807."))
    return int(digits)


def _too_deep() -> ParseError:
    return ParseError(_("The body is nested deeper than %(depth)s levels.") % {"depth": MAX_DEPTH})
