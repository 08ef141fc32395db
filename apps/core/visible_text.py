"""Scraped text made visible: control and direction characters as symbols instead of effects."""

from __future__ import annotations

# Not the joiners U+200C and U+200D: emoji and Persian need them, and they reorder nothing.
_NAMED = (0x061C, 0x200B, 0x200E, 0x200F, 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF)
_SYMBOLS: dict[int, int | str] = {
    **{code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)},
    0x7F: "␡",
    **{code: f"\u2039U+{code:04X}\u203a" for code in (*range(0x80, 0xA0), *_NAMED)},
}


def visible_text(text: str) -> str:
    """Tabs and line feeds stay. static/log_viewer.js does the same for log lines."""
    return text.translate(_SYMBOLS)
