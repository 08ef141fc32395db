"""What is wrong with a template, in one sentence that names the bit."""

from __future__ import annotations

from apps.core.errors import Invalid

LONGEST_BIT = 60


class TemplateFault(Invalid):
    code = "bad_template"


def bit(text: str) -> str:
    """As much of a template as a sentence can hold."""
    plain = "".join(letter if letter.isprintable() else "\ufffd" for letter in text[: LONGEST_BIT + 1])
    return plain if len(plain) <= LONGEST_BIT else plain[:LONGEST_BIT] + "…"
