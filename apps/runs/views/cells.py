"""Scraped values as table cells that can neither act nor mislead."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import ngettext

from apps.core.visible_text import visible_text

LONG_TEXT = 120
SHOWN_TEXT = 20_000
MAX_URL = 2000
MISSING = object()
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".svg")
_LINK = '<a class="claw-cell-{}" href="{}" rel="noopener noreferrer" target="_blank"><bdi>{}</bdi></a>'
_FOLDED = '<details class="claw-cell-{}"><summary><bdi>{}</bdi></summary><pre>{}</pre></details>'


@dataclass(frozen=True, slots=True)
class Cell:
    """`kind` says how it is shown; `text` is free of control characters but not escaped."""

    kind: str
    text: str = ""
    more: str = ""
    url: str = ""

    def html(self) -> SafeString:
        """Made here and not by a template: a page has up to 1 500 of them."""
        if self.url:
            return format_html(_LINK, self.kind, self.url, self.text)
        if self.more:
            return format_html(_FOLDED, self.kind, self.text, self.more)
        if self.kind in ("empty", "word"):
            return format_html('<code class="claw-cell-{}">{}</code>', self.kind, self.text)
        return format_html("<bdi>{}</bdi>", self.text)


def cell_of(value: Any) -> Cell:
    if value is MISSING:
        return Cell("missing")
    if value is None or value == "" or value == [] or value == {}:
        return Cell("empty", json.dumps(value))
    if isinstance(value, bool):
        return Cell("word", json.dumps(value))
    if isinstance(value, int | float):
        return Cell("number", json.dumps(value))
    if isinstance(value, str):
        return _text_cell(value)
    return _nested_cell(value)


def link_of(text: str) -> str:
    """The address if it is an http or https one and nothing else, else nothing."""
    if (
        len(text) > MAX_URL
        or not text.isprintable()
        or " " in text
        or not text.lower().startswith(("http://", "https://"))
    ):
        return ""
    try:
        parts = urlsplit(text)
    except ValueError:
        return ""
    return text if parts.scheme in ("http", "https") and parts.hostname else ""


def _text_cell(value: str) -> Cell:
    url = link_of(value)
    shown = visible_text(value[:SHOWN_TEXT])
    if url:
        kind = "image" if urlsplit(url).path.lower().endswith(_IMAGES) else "link"
        return Cell(kind, shown if len(shown) <= LONG_TEXT else f"{shown[:LONG_TEXT]}…", url=url)
    if len(shown) > LONG_TEXT or "\n" in shown:
        first = shown[:LONG_TEXT].split("\n", 1)[0]
        return Cell("long", f"{first}…", more=shown)
    return Cell("text", shown)


def _nested_cell(value: Any) -> Cell:
    if isinstance(value, list):
        summary = ngettext("list of %(n)d", "list of %(n)d", len(value)) % {"n": len(value)}
    else:
        summary = ngettext("object with %(n)d key", "object with %(n)d keys", len(value)) % {"n": len(value)}
    return Cell("nested", summary, more=pretty(value))


def pretty(value: Any) -> str:
    text = visible_text(json.dumps(value, ensure_ascii=False, indent=2))
    return text if len(text) <= SHOWN_TEXT else f"{text[:SHOWN_TEXT]}\n…"
