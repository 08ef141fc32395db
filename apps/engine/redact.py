"""Hides secrets in log text: the run's own values in every common spelling, and shapes that are secrets anywhere."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

HIDDEN = "***"
MIN_SECRET_LENGTH = 4
_MIN_PART_LENGTH = 8

# A cheap word that must be in the text before the pattern is tried, the pattern, and what replaces it.
_SHAPES: tuple[tuple[tuple[str, ...], re.Pattern[str], str], ...] = (
    # scheme://user:password@host
    (
        ("://",),
        re.compile(r"(?<=://)([^\s:/@'\"<>]{0,256}):[^\s/@'\"<>]{1,1024}@(?=[\w\[])"),
        rf"\1:{HIDDEN}@",
    ),
    (
        ("uthorization", "UTHORIZATION"),
        re.compile(
            r"""(?i)(\b(?:proxy-)?authorization["']?\s{0,4}[:=]\s{0,4}(?:b(?=["']))?["']?)((?:bearer|basic|token|digest|apikey)\s{1,4})?[^\s"',;]{3,}"""
        ),
        rf"\1\2{HIDDEN}",
    ),
    (
        ("ookie",),
        re.compile(
            # Up to the next such word at most: each of them looking as far as it may would take seconds a line.
            r"""(?i)(\b(?:set-)?cookie2?["']?\s{0,4}[:=](?:(?!\bcookie2?["']?\s{0,4}[:=]).){0,400}?\b(?:session(?:_?id)?|sid|phpsessid|jsessionid|csrftoken|auth(?:_?token)?)=)[^\s;"',]+"""
        ),
        rf"\1{HIDDEN}",
    ),
    (("AKIA", "ASIA"), re.compile(r"\b((?:AKIA|ASIA)[A-Z0-9]{4})[A-Z0-9]{12}\b"), rf"\1{HIDDEN}"),
    (
        ("ecret", "ECRET", "assw", "ASSW", "oken", "OKEN", "pi_key", "PI_KEY", "pikey", "pi-key"),
        re.compile(
            # At the start of a word or of a part of one (db_password); what stands before it is none of our business.
            r"""(?i)(?<![^\W_])((?:password|passwd|secret(?:_?access)?(?:_?key)?|access_?token|auth_?token|refresh_?token|api[_-]?key|client_?secret)["']?\s{0,2}[=:]\s{0,2}["']?)(?!\*\*\*)[^\s"'&;,]{3,}"""
        ),
        rf"\1{HIDDEN}",
    ),
)


class Redactor:
    """Made once per attempt from its secret values; lines without a hit cost a few substring searches."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        spellings = {spelling for value in values for spelling in _spellings(value)}
        # The longest first: a secret that contains another one is hidden as a whole.
        self._spellings = sorted(spellings, key=lambda text: (-len(text), text))

    def redact(self, text: str) -> str:
        """Works on one line or on a block of lines; never joins or splits lines."""
        for spelling in self._spellings:
            if spelling in text:
                text = text.replace(spelling, HIDDEN)
        for words, pattern, replacement in _SHAPES:
            if any(word in text for word in words):
                text = "\n".join(
                    pattern.sub(replacement, line) if any(word in line for word in words) else line
                    for line in text.split("\n")
                )
        return text

    def holds_secret(self, raw: bytes) -> bool:
        """Whether one of the run's own values stands in a record; shapes are not looked for in data."""
        return any(spelling.encode() in raw for spelling in self._spellings)

    def redact_values(self, raw: bytes) -> bytes:
        """Hide the run's own values in a record without a change to anything else."""
        for spelling in self._spellings:
            raw = raw.replace(spelling.encode(), HIDDEN.encode())
        return raw


def _spellings(value: str) -> Iterator[str]:
    value = value.strip("\r\n")
    if len(value) < MIN_SECRET_LENGTH:
        return
    if "\n" in value:  # a key file is printed line by line
        yield from (part for part in map(str.strip, value.splitlines()) if len(part) >= _MIN_PART_LENGTH)
        yield from _escaped(value)
        return
    yield value
    yield from _escaped(value)
    yield from _base64_pieces(value.encode("utf-8", "surrogatepass"))


def _escaped(value: str) -> Iterator[str]:
    """URL, JSON and repr() spellings."""
    encoded = value.encode("utf-8", "surrogatepass")
    for spelling in (
        quote(encoded, safe=""),
        quote(encoded),
        quote_plus(encoded),
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        repr(value)[1:-1],
    ):
        if "\n" not in spelling:
            yield spelling
            yield re.sub(r"%[0-9A-F]{2}", lambda code: code[0].lower(), spelling)


def _base64_pieces(encoded: bytes) -> Iterator[str]:
    """The part of the base64 text that depends on the value alone, at each of the three alignments.

    `Authorization: Basic` carries base64("user:secret"), so the value may begin in the middle of a group.
    """
    for shift in range(3):
        text = base64.b64encode(b"\0" * shift + encoded).decode().rstrip("=")
        first = -(-shift * 8 // 6)
        whole = (shift + len(encoded)) * 8 // 6
        piece = text[first:whole]
        if len(piece) >= MIN_SECRET_LENGTH + 1:
            yield piece
            yield piece.translate(str.maketrans("+/", "-_"))
