"""What the `format` keyword checks."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from jsonschema import Draft202012Validator, FormatChecker

from apps.core.schema_forms.patterns import BadPattern, compiled

MAX_URI = 8192
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\x00-\x20\x7f<>\"{}|\\^`]+\Z")
_FROM_LIBRARY = ("date", "date-time", "time", "duration", "hostname", "ipv4", "ipv6", "uuid")

FORMATS = FormatChecker(formats=())
FORMATS.checkers = {name: Draft202012Validator.FORMAT_CHECKER.checkers[name] for name in _FROM_LIBRARY}


@FORMATS.checks("email")
def is_email(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        validate_email(value)
    except ValidationError:
        return False
    return True


@FORMATS.checks("uri")
def is_uri(value: object) -> bool:
    return not isinstance(value, str) or (value.isascii() and is_iri(value))


@FORMATS.checks("iri")
def is_iri(value: object) -> bool:
    """The library's grammars are slow on long input; this takes what a fetcher could open."""
    if not isinstance(value, str):
        return True
    if len(value) > MAX_URI or not _URI.match(value):
        return False
    try:
        parts = urlsplit(value)
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError:
        return False
    return port_is_fine and (parts.scheme not in ("http", "https", "ftp") or bool(parts.hostname))


@FORMATS.checks("regex")
def is_regex(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        compiled(value)
    except BadPattern:
        return False
    return True
