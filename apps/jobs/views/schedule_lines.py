"""A schedule as pages show it: in words, with what it does now."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from apps.jobs import timing
from apps.jobs.models import Firing, Job, Schedule
from apps.jobs.selectors import overview
from apps.jobs.selectors.due import is_paused, rule_for
from apps.jobs.selectors.schedules import schedules_of
from apps.jobs.timing import BadRule

# The icon and the colour of each state.
_LOOKS = {
    "on": ("icon:circle-check", "green"),
    "paused": ("icon:player-pause", "yellow"),
    "off": ("icon:player-stop", "grey"),
    "over": ("icon:check", "grey"),
    "trouble": ("icon:alert-triangle", "red"),
}


def state_names() -> dict[str, str]:
    return {
        "on": _("On"),
        "paused": _("Paused"),
        "off": _("Off"),
        "over": _("Over"),
        "trouble": _("In trouble"),
    }


@dataclass(frozen=True, slots=True)
class ScheduleLine:
    """`words` are empty where the rule cannot be read any more."""

    schedule: Schedule
    words: str
    state: str
    word: str
    icon: str
    tone: str
    may_change: bool
    may_run: bool
    last: Firing | None
    warning: str = ""

    @property
    def next_at(self) -> datetime | None:
        return self.schedule.next_fire_at if self.schedule.enabled else None


def words_of(schedule: Schedule) -> str:
    try:
        return timing.words(rule_for(schedule))
    except BadRule:
        return ""


def state_of(schedule: Schedule, now: datetime) -> str:
    if schedule.trouble:
        return "trouble"
    if not schedule.enabled:
        return "off"
    if is_paused(schedule, now):
        return "paused"
    return "on" if schedule.next_fire_at is not None or schedule.stale else "over"


def lines_of(glances: list[overview.ScheduleGlance], now: datetime) -> list[ScheduleLine]:
    names = state_names()
    lines = []
    for glance in glances:
        state = state_of(glance.schedule, now)
        icon, tone = _LOOKS[state]
        lines.append(
            ScheduleLine(
                schedule=glance.schedule,
                words=words_of(glance.schedule),
                state=state,
                word=names[state],
                icon=icon,
                tone=tone,
                may_change=glance.may_change,
                may_run=glance.may_run,
                last=glance.last,
            )
        )
    return lines


def lines_of_job(user: Any, job: Job, now: datetime) -> list[ScheduleLine]:
    """Of a job the caller was allowed to see, with a warning where its runs take too long."""
    own = list(schedules_of(job))
    for each in own:
        each.job = job
    average = overview.average_seconds(job) if own else None
    return [replace(line, warning=_warning(line, average, now)) for line in lines_of(overview.glances(user, own), now)]


def _warning(line: ScheduleLine, average: float | None, now: datetime) -> str:
    if line.state not in ("on", "paused"):
        return ""
    try:
        return timing.warning(rule_for(line.schedule), average_seconds=average, after=now)
    except BadRule:
        return ""
