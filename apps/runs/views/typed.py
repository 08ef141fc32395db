"""Templates of a run's order beside what they have become."""

from __future__ import annotations

from typing import Any

from apps.core.schema_forms.texts import shown
from apps.core.visible_text import visible_text
from apps.runs.models import Run

LONGEST = 200


def typed_in(run: Run, part: str) -> dict[str, str]:
    """What was typed, by the names (of the command: numbers) of those values that hold templates."""
    templates = run.spec.get("templates")
    found: Any = templates.get(part) if isinstance(templates, dict) else None
    if not isinstance(found, dict):
        return {}
    return {str(name): _short(visible_text(shown(value))) for name, value in found.items()}


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
