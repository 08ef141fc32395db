"""The words a schema brings along, in the language of the reader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.utils.translation import get_language


def text_of(schema: Mapping[str, Any], keyword: str) -> str:
    """`title` or the like; `x-title-zh-hans` beside it is the same in Chinese."""
    language = (get_language() or "en").lower()
    translated = schema.get(f"x-{keyword}-{language}")
    text = translated or schema.get(keyword, "")
    return text if isinstance(text, str) else ""


def readable(name: str) -> str:
    """A label made of a property's name: max_pages becomes “Max pages”."""
    words = name.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:]


def title_of(schema: Mapping[str, Any], name: str) -> str:
    return text_of(schema, "title") or readable(name)


def shown(value: Any) -> str:
    """A value in a sentence or placeholder."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def choices_of(schema: Mapping[str, Any]) -> list[tuple[Any, str]] | None:
    """Value and label of each choice: from `enum` with `x-enum-titles`, or from `oneOf` of const and title."""
    options = schema.get("oneOf")
    if isinstance(options, list) and options and all(isinstance(o, dict) and "const" in o for o in options):
        return [(option["const"], text_of(option, "title") or shown(option["const"])) for option in options]
    if "const" in schema:
        return [(schema["const"], shown(schema["const"]))]
    values = schema.get("enum")
    if not isinstance(values, list):
        return None
    return [(value, label) for value, label in zip(values, _enum_titles(schema, values), strict=True)]


def _enum_titles(schema: Mapping[str, Any], values: list[Any]) -> list[str]:
    language = (get_language() or "en").lower()
    titles = schema.get(f"x-enum-titles-{language}") or schema.get("x-enum-titles") or {}
    if isinstance(titles, list):
        titles = dict(zip(map(shown, values), titles, strict=False))
    return [str(titles.get(shown(value)) or shown(value)) for value in values]
