"""What people say of a schedule, checked all together: they see every fault at once, at its field."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from apps.core.durations import format_duration
from apps.jobs.models import Misfire, Schedule, ScheduleType
from apps.jobs.policies import DAY, Faults, checked_span
from apps.jobs.selectors.due import rule_for, slot_after
from apps.jobs.services.schedules.compiling import anchor_of
from apps.jobs.timing import BadRule, check_cron, shortest_gap, zone_of
from apps.jobs.timing.rules import LAST, LONGEST_INTERVAL

LONGEST_NAME = 100
LONGEST_JITTER = 7 * DAY
LONGEST_GRACE = 30 * DAY
LONGEST_SPACING = DAY
MOST_MADE_UP = 1000
# What the rule is made of, by the names that people use, and which of them each type needs.
RULE = ("type", "cron", "every", "at", "anchor_at", "timezone", "start_at", "end_at")
OWN: dict[str, str] = {ScheduleType.CRON: "cron", ScheduleType.INTERVAL: "every", ScheduleType.ONCE: "at"}
_NAMES = {"expression": "cron", "every_seconds": "every", "once_at": "at"}
# Every column that people decide about, by the name that they use.
SAID = {
    **{name: name for name in ("type", "anchor_at", "timezone", "start_at", "end_at", "name", "parameters")},
    **_NAMES,
    "typed": "cron",
    "jitter_seconds": "jitter",
    **dict.fromkeys(("misfire", "misfire_grace_seconds", "misfire_cap", "misfire_spacing_seconds"), "misfire"),
}


def take_plain(schedule: Schedule, changes: Mapping[str, Any], *, faults: Faults) -> None:
    """Name, switch and what becomes of missed times."""
    if "name" in changes:
        schedule.name = _name(changes["name"], faults)
    if "enabled" in changes:
        if isinstance(changes["enabled"], bool):
            schedule.enabled = changes["enabled"]
        else:
            faults["enabled"] = [_("This is true or false.")]
    if "misfire" in changes:
        _take_misfire(schedule, changes["misfire"], faults)
    if "jitter" in changes:
        schedule.jitter_seconds = checked_span(changes["jitter"] or 0, "jitter", faults, least=0, most=LONGEST_JITTER)


def take_rule(schedule: Schedule, changes: Mapping[str, Any], *, now: datetime, faults: Faults) -> bool:
    """Whether its times are others than before."""
    before = _rule(schedule)
    if "timezone" in changes:
        _take_zone(schedule, changes["timezone"], faults)
    for name in ("start_at", "end_at"):
        if name in changes:
            setattr(schedule, name, _instant(changes[name], name, faults))
    kind = changes.get("type", schedule.type)
    if kind not in ScheduleType.values:
        faults["type"] = [_("Choose one of: %(choices)s.") % {"choices": ", ".join(ScheduleType.values)}]
        return False
    new_type, schedule.type = kind != schedule.type, kind
    _refuse_others(schedule, changes, faults)
    if new_type or OWN[schedule.type] in changes:
        _take_own(schedule, changes, now, faults)
    if schedule.type == ScheduleType.INTERVAL and not faults:
        _take_anchor(schedule, changes, now, before, faults)
    changed = _rule(schedule) != before
    if changed and not faults:
        _check_together(schedule, now, faults)
    return changed


def check_jitter(schedule: Schedule, *, now: datetime, faults: Faults) -> None:
    """Times must not overtake each other."""
    if not schedule.jitter_seconds or faults:
        return
    gap = shortest_gap(rule_for(schedule), now)
    if gap is not None and schedule.jitter_seconds > gap:
        sentence = _("Only %(gap)s lie between two of its times: the jitter is at most that.")
        faults["jitter"] = [sentence % {"gap": format_duration(int(gap))}]


def _rule(schedule: Schedule) -> tuple[Any, ...]:
    return (
        schedule.type,
        schedule.expression,
        schedule.every_seconds,
        schedule.anchor_at,
        schedule.once_at,
        schedule.timezone,
        schedule.start_at,
        schedule.end_at,
    )


def _name(given: Any, faults: Faults) -> str:
    text = given.strip() if isinstance(given, str) else ""
    if not isinstance(given, str) or len(text) > LONGEST_NAME or not text.isprintable():
        faults["name"] = [_("A schedule's name has at most %(n)d printable characters.") % {"n": LONGEST_NAME}]
        return ""
    return text


def _take_misfire(schedule: Schedule, given: Any, faults: Faults) -> None:
    if given is None:
        return
    if not isinstance(given, Mapping):
        faults["misfire"] = [_("This is an object with a value for each name.")]
        return
    known = ("policy", "grace", "cap", "spacing")
    for name in given.keys() - {*known}:
        sentence = _("There is no such field. Known: %(known)s.")
        faults[f"misfire.{str(name)[:40]}"] = [sentence % {"known": ", ".join(known)}]
    policy = given.get("policy", schedule.misfire)
    if policy not in Misfire.values:
        faults["misfire.policy"] = [_("Choose one of: %(choices)s.") % {"choices": ", ".join(Misfire.values)}]
    schedule.misfire = policy
    for name, most in (("grace", LONGEST_GRACE), ("spacing", LONGEST_SPACING)):
        if name in given:
            seconds = checked_span(given[name], f"misfire.{name}", faults, least=0, most=most)
            setattr(schedule, f"misfire_{name}_seconds", seconds)
    cap = given.get("cap", schedule.misfire_cap)
    if isinstance(cap, bool) or not isinstance(cap, int) or not 1 <= cap <= MOST_MADE_UP:
        sentence = _("This is a number from %(least)d to %(most)d.")
        faults["misfire.cap"] = [sentence % {"least": 1, "most": MOST_MADE_UP}]
    else:
        schedule.misfire_cap = cap


def _take_zone(schedule: Schedule, given: Any, faults: Faults) -> None:
    try:
        schedule.timezone = zone_of(given if isinstance(given, str) else str(given)[:64]).key
    except BadRule as error:
        faults["timezone"] = [error.message]


def _instant(given: Any, name: str, faults: Faults) -> datetime | None:
    if given is None:
        return None
    if not isinstance(given, datetime) or given.tzinfo is None:
        faults[name] = [_("Enter a date and a time with its zone.")]
        return None
    if given > LAST:
        faults[name] = [_("This is too far away.")]
        return None
    return given.replace(microsecond=0)


def _refuse_others(schedule: Schedule, changes: Mapping[str, Any], faults: Faults) -> None:
    """What belongs to another type would be dropped in silence."""
    for kind, name in OWN.items():
        if kind != schedule.type and changes.get(name) not in (None, ""):
            sentence = _("This belongs to schedules of type %(kind)s; this one is of type %(type)s.")
            faults[name] = [sentence % {"kind": kind, "type": schedule.type}]


def _take_own(schedule: Schedule, changes: Mapping[str, Any], now: datetime, faults: Faults) -> None:
    """The cron expression, the interval or the date; what other types had is gone."""
    schedule.expression = schedule.typed = ""
    schedule.every_seconds, schedule.once_at, anchor = None, None, schedule.anchor_at
    schedule.anchor_at = None
    own = OWN[schedule.type]
    given = changes.get(own)
    if given in (None, ""):
        faults[own] = [_("This is needed.")]
    elif schedule.type == ScheduleType.CRON:
        text = given if isinstance(given, str) else str(given)[:500]
        try:
            schedule.expression, schedule.typed = check_cron(text, seed=schedule.pk), " ".join(text.split())
        except BadRule as error:
            faults["cron"] = [error.message]
    elif schedule.type == ScheduleType.INTERVAL:
        schedule.every_seconds = checked_span(given, "every", faults, least=1, most=LONGEST_INTERVAL)
        schedule.anchor_at = anchor
    else:
        schedule.once_at = _instant(given, "at", faults)


def _take_anchor(
    schedule: Schedule, changes: Mapping[str, Any], now: datetime, before: tuple[Any, ...], faults: Faults
) -> None:
    """Said, or anew where the interval or its first day is another."""
    if changes.get("anchor_at") is not None:
        schedule.anchor_at = _instant(changes["anchor_at"], "anchor_at", faults)
    elif schedule.anchor_at is None or (schedule.type, schedule.every_seconds, schedule.start_at) != (
        before[0], before[2], before[6]
    ):  # fmt: skip
        schedule.anchor_at = anchor_of(schedule, now)


def _check_together(schedule: Schedule, now: datetime, faults: Faults) -> None:
    """A rule that never fires is a mistake."""
    if schedule.start_at and schedule.end_at and schedule.end_at <= schedule.start_at:
        faults["end_at"] = [_("The end lies before the start.")]
        return
    if schedule.end_at and schedule.end_at <= now:
        faults["end_at"] = [_("The end lies in the past.")]
        return
    if schedule.once_at and schedule.once_at <= now:
        faults["at"] = [_("This time lies in the past.")]
        return
    try:
        if slot_after(schedule, now) is None:
            own = OWN[schedule.type]
            bounded = schedule.start_at or schedule.end_at
            faults[own] = [_("It would never run: none of its times lies between the first and the last day.")]
            if not bounded:
                faults[own] = [_("It would never run: it has no time to come.")]
    except BadRule as error:
        faults.update(faults_of(error))


def faults_of(error: BadRule) -> Faults:
    """What is wrong with a rule, by the names that people use."""
    return {_NAMES.get(field, field): sentences for field, sentences in error.fields.items()}
