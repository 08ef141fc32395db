"""The attempts of a run, and the one a page is about: `?attempt=2`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from apps.runs import reasons, selectors
from apps.runs.models import Attempt, Run
from apps.runs.states import ACTIVE, State


@dataclass(frozen=True, slots=True)
class AttemptLine:
    """An attempt with its outcome in words."""

    attempt: Attempt
    state: str
    label: str
    sentence: str


def attempt_line(run: Run, attempt: Attempt) -> AttemptLine:
    state = selectors.attempt_state(run, attempt)
    return AttemptLine(attempt, state, str(State(state).label), reasons.sentence(attempt))


def attempt_asked(request: HttpRequest) -> int | None:
    """The number in the address; anything else asks for all of them."""
    text = request.GET.get("attempt", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def attempts_context(request: HttpRequest, run: Run) -> dict[str, Any]:
    """Nothing to choose from while there is one attempt only."""
    if run.attempt < 2:
        return {"attempt_lines": [], "chosen": None, "live": run.state in ACTIVE}
    lines = [attempt_line(run, attempt) for attempt in selectors.attempts(run)]
    asked = attempt_asked(request)
    chosen = next((line for line in lines if line.attempt.number == asked), None)
    goes_on = chosen is None or (chosen.attempt.number == run.attempt and chosen.attempt.finished_at is None)
    return {"attempt_lines": lines, "chosen": chosen, "live": run.state in ACTIVE and goes_on}
