"""What a run tells: why it waits, why it ended, what happened when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from apps.runs import reasons, selectors, services
from apps.runs.models import Run, RunEvent
from apps.runs.states import State
from apps.runs.sweeps import LONGEST_PAUSE_SECONDS

GRACE_SECONDS = 10  # where an order says nothing else
_FAILURES = (State.FAILED, State.TIMED_OUT, State.LOST)


@dataclass(frozen=True, slots=True)
class Telling:
    """A sentence, and perhaps what is counted down to: `label` stands before the time that is left."""

    text: str = ""
    label: str = ""
    until: datetime | None = None


def telling(run: Run, now: datetime) -> Telling:
    """Why the run is as it is, and what comes next."""
    tell = _TELLINGS.get(State(run.state))
    told = tell(run, now) if tell else Telling(_ending(run))
    silent = selectors.silence(run, now)
    return replace(told, text=f"{told.text} {silent}".strip()) if silent else told


def _ending(run: Run) -> str:
    said = reasons.sentence(run)
    if run.attempt > 1 and run.state in _FAILURES:
        tried = _("It was tried %(n)d times.") % {"n": run.attempt}
        said = f"{said} {tried}".strip()
    if run.memory_warning:
        said = f"{said} {reasons.memory_sentence(memory_mb=run.memory_bytes // 1024 // 1024)}".strip()
    return said


def _queued(run: Run, now: datetime) -> Telling:
    return Telling(services.why_waiting(run, now))


def _running(run: Run, now: datetime) -> Telling:
    return Telling(_("A pause is asked for.") if run.pause_requested_at else _ending(run))


def _paused(run: Run, now: datetime) -> Telling:
    if run.pause_requested_at is None:
        return Telling(_("It goes on in a moment."))
    event = selectors.last_event(run, kind="pause")
    said = _("Paused by %(name)s.") % {"name": event.actor} if event else _("Paused.")
    seconds = run.spec["limits"].get("pause_seconds") or LONGEST_PAUSE_SECONDS
    until = run.paused_at + timedelta(seconds=seconds) if run.paused_at else None
    still = _("Its time limits stand still.")
    return Telling(f"{said} {still}", _("It goes on by itself in"), until)


def _stopping(run: Run, now: datetime) -> Telling:
    event = selectors.last_event(run, to_state=State.STOPPING)
    said = reasons.sentence(event) if event else ""
    if run.kill_requested_at or run.stop_requested_at is None:
        killed = _("It is being killed.") if run.kill_requested_at else ""
        return Telling(f"{said} {killed}".strip())
    grace = timedelta(seconds=run.spec["limits"].get("grace_seconds", GRACE_SECONDS))
    return Telling(said, _("Time to end by itself:"), run.stop_requested_at + grace)


def _retrying(run: Run, now: datetime) -> Telling:
    event = selectors.last_event(run, to_state=State.RETRY_WAIT)
    said = " ".join(part for part in (reasons.sentence(event), tries(event)) if part) if event else ""
    return Telling(said, _("Starts again in"), run.retry_at)


_TELLINGS: dict[State, Callable[[Run, datetime], Telling]] = {
    State.QUEUED: _queued,
    State.RUNNING: _running,
    State.PAUSED: _paused,
    State.STOPPING: _stopping,
    State.RETRY_WAIT: _retrying,
}


def tries(event: RunEvent) -> str:
    """How many of its tries a run that is started again has used."""
    failures, allowed = event.detail.get("failures"), event.detail.get("attempts")
    if not isinstance(failures, int) or not isinstance(allowed, int):
        return ""
    values = {"n": failures, "most": allowed}
    if event.detail.get("infrastructure"):
        return _("No fault of the spider, so no try of its own: number %(n)d of at most %(most)d.") % values
    return _("%(n)d of %(most)d tries are used.") % values


@dataclass(frozen=True, slots=True)
class EventLine:
    """An event in words; `since` is the time that had passed since the one before."""

    event: RunEvent
    title: str
    sentence: str
    icon: str
    since: timedelta | None
    delay: float | None


# Notes without a change of state: what they are called, and their icon.
_NOTES: dict[str, tuple[Callable[[], str], str]] = {
    "kill": (lambda: _("Kill asked for"), "icon:skull"),
    "pause": (lambda: _("Pause asked for"), "icon:player-pause"),
    "resume": (lambda: _("Resume asked for"), "icon:player-play"),
    "adopted": (lambda: _("Taken over by another worker"), "icon:replace"),
    "fenced": (lambda: _("A former worker was shut out"), "icon:shield-lock"),
    "exhausted": (lambda: _("All attempts are used"), "icon:battery-off"),
    "turn": (lambda: _("Its turn in the batch"), "icon:player-play"),
    "repair": (lambda: _("Repair job asked for"), "icon:tool"),
}


def event_lines(run: Run) -> list[EventLine]:
    """Oldest first."""
    lines: list[EventLine] = []
    before: datetime | None = None
    for event in selectors.events(run):
        title, icon = event_title(event)
        since = event.at - before if before is not None else None
        lines.append(EventLine(event, title, event_sentence(event), icon, since, _delay(event)))
        before = event.at
    return lines


def event_title(event: RunEvent) -> tuple[str, str]:
    """What happened, and the icon of what is no change of state."""
    if event.to_state in State.values:
        return str(State(event.to_state).label), ""
    said, icon = _NOTES.get(event.kind, (lambda: event.kind, "icon:info-circle"))
    return said(), icon


def event_sentence(event: RunEvent) -> str:
    """Why, and how many tries are left."""
    said = [reasons.sentence(event), tries(event) if event.to_state == State.RETRY_WAIT else "", _handed_over(event)]
    return " ".join(part for part in said if part)


def _handed_over(event: RunEvent) -> str:
    """Which worker had the run, and which has it now."""
    before, after = event.detail.get("from"), event.detail.get("to")
    if event.kind not in ("adopted", "fenced") or not before or not after:
        return ""
    return _("From worker %(before)s to %(after)s.") % {"before": before, "after": after}


def _delay(event: RunEvent) -> float | None:
    """Seconds until the run is started again."""
    seconds = event.detail.get("delay_seconds") if event.to_state == State.RETRY_WAIT else None
    return float(seconds) if isinstance(seconds, int | float) else None


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of the run's life; without an end it is going on."""

    label: str
    begin: datetime
    end: datetime | None


def phases(run: Run) -> list[Phase]:
    """Waiting and running; what lies between them is on the Events tab."""
    until = run.started_at or run.finished_at
    found = [Phase(pgettext("phase of a run", "Queued"), run.queued_at, until)]
    if run.started_at:
        waits = run.state in (State.QUEUED, State.RETRY_WAIT)
        label = pgettext("phase of a run", "Since the first start") if waits else pgettext("phase of a run", "Running")
        found.append(Phase(label, run.started_at, run.finished_at))
    return found
