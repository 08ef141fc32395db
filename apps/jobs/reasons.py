"""One plain sentence for every way a due time can go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.jobs.timing.spans import span
from apps.runs import reasons as of_runs

# Later than that is worth a word.
ON_TIME_SECONDS = 60


class Due(Protocol):
    """What a sentence needs to know of a row of the ledger."""

    scheduled_for: datetime
    until: datetime | None
    times: int
    outcome: str
    reason: str
    detail: Any
    decided_at: datetime


def sentence(due: Due) -> str:
    """What became of it and why, in the reader's language."""
    detail: Mapping[str, Any] = due.detail if isinstance(due.detail, Mapping) else {}
    if not due.reason and due.outcome == "fired":
        return _fired(due)
    say = _SENTENCES.get(due.reason) or (_error if due.outcome == "failed" else _as_of_a_run)
    text = say(due, detail)
    if due.times > 1:
        text += " " + ngettext(
            "The same goes for %(n)d time in a row.", "The same goes for %(n)d times in a row.", due.times
        ) % {"n": due.times}
    return text


def _fired(due: Due) -> str:
    late = (due.decided_at - due.scheduled_for).total_seconds()
    if late <= ON_TIME_SECONDS:
        return _("A run was started.")
    return _("A run was started, %(span)s after the time.") % {"span": span(round(late))}


def _as_of_a_run(due: Due, detail: Mapping[str, Any]) -> str:
    """A run that was skipped at once says why itself."""
    return of_runs.sentence(due)


def _missed(due: Due, detail: Mapping[str, Any]) -> str:
    late = max(0, round((due.decided_at - (due.until or due.scheduled_for)).total_seconds()))
    told = _("The scheduler came %(span)s too late, and the schedule does not make up for such a time.")
    return told % {"span": span(late)}


def _changed(due: Due, detail: Mapping[str, Any]) -> str:
    return _("It was due and not fired yet when the schedule was changed.")


def _paused(due: Due, detail: Mapping[str, Any]) -> str:
    if who := _who(detail):
        return _("The schedule was paused by %(by)s: %(why)s") % who
    return _("The schedule was paused.")


def _maintenance(due: Due, detail: Mapping[str, Any]) -> str:
    if who := _who(detail):
        return _("The panel was in maintenance, begun by %(by)s: %(why)s") % who
    return _("The panel was in maintenance.")


def _off(due: Due, detail: Mapping[str, Any]) -> str:
    if who := _who(detail):
        return _("All scheduling was switched off by %(by)s: %(why)s") % who
    return _("All scheduling was switched off.")


def _who(detail: Mapping[str, Any]) -> dict[str, str]:
    """Who has stopped it and why; empty where one of them is not known."""
    who = {name: str(detail.get(name) or "") for name in ("by", "why")}
    return who if all(who.values()) else {}


def _param_error(due: Due, detail: Mapping[str, Any]) -> str:
    error = str(detail.get("error") or "")
    fields = detail.get("fields")
    if isinstance(fields, Mapping):
        told = [f"{name}: {' '.join(map(str, said))}" for name, said in fields.items() if isinstance(said, list)]
        error = " ".join([error, *told[:5]]).strip()
    if not error:
        return _("Its parameters could not be made.")
    return _("Its parameters could not be made: %(error)s") % {"error": error}


def _error(due: Due, detail: Mapping[str, Any]) -> str:
    error = str(detail.get("error") or "")
    if not error:
        return _("No run could be made.")
    return _("No run could be made: %(error)s") % {"error": error}


_SENTENCES: dict[str, Callable[[Due, Mapping[str, Any]], str]] = {
    "misfire_skip": _missed,
    "schedule_changed": _changed,
    "paused": _paused,
    "maintenance": _maintenance,
    "scheduling_off": _off,
    "param_error": _param_error,
    "internal_error": _error,
}
