"""How states look: an icon and a colour for each, always shown with the word."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """`tone` is the suffix of a CSS class in panel.css; a spinning icon means that something moves right now."""

    icon: str
    tone: str
    spins: bool = False


UNKNOWN = Mark("icon:help-circle", "grey")
STATE_MARKS = {
    "waiting": Mark("icon:clock-pause", "grey"),
    "queued": Mark("icon:clock", "grey"),
    "starting": Mark("icon:loader-2", "blue", spins=True),
    "running": Mark("icon:loader-2", "blue", spins=True),
    "paused": Mark("icon:player-pause", "blue"),
    "stopping": Mark("icon:loader-2", "yellow", spins=True),
    "retry_wait": Mark("icon:history", "grey"),
    "succeeded": Mark("icon:circle-check", "green"),
    "failed": Mark("icon:circle-x", "red"),
    "timed_out": Mark("icon:clock-x", "orange"),
    "canceled": Mark("icon:square", "yellow"),
    "lost": Mark("icon:help-circle", "purple"),
    "skipped": Mark("icon:player-skip-forward", "grey"),
    # What else may become of a due time.
    "fired": Mark("icon:player-play", "blue"),
    "missed": Mark("icon:calendar-x", "orange"),
    "unprepared": Mark("icon:alert-triangle", "red"),
    "planned": Mark("icon:calendar-time", "grey"),
}


def mark_of(state: str) -> Mark:
    return STATE_MARKS.get(state, UNKNOWN)
