""" "Why did it not run?" for any job and time: out of the ledger, else out of its schedules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from apps.jobs import reasons
from apps.jobs.models import Firing, Job, Schedule
from apps.jobs.selectors.due import fire_at, is_paused, rule_for
from apps.jobs.selectors.lateness import ON_TIME
from apps.jobs.selectors.schedules import clock, schedules_of
from apps.jobs.timing import BadRule, Rule, words
from apps.jobs.timing.rules import LAST
from apps.jobs.timing.spans import span

MINUTE = timedelta(minutes=1)
_INSTANT = timedelta(microseconds=1)
# How the log of changes tells of another rule.
_CHANGED = "changed: "
_RULE = {"type", "cron", "every", "at", "anchor_at", "timezone", "start_at", "end_at"}
# Of a rule that fires each second a minute has no more.
MOST_ROWS = 60


@dataclass(frozen=True, slots=True)
class Answer:
    """What became, or becomes, of a time by one schedule: a row of the ledger, or a sentence alone."""

    schedule: Schedule | None
    firing: Firing | None
    sentence: str


def why_not_fired(job: Job, instant: datetime, *, now: datetime) -> str:
    """What `answers_for` says, in one text."""
    return in_one_text(answers_for(job, instant, now=now))


def in_one_text(answers: Sequence[Answer]) -> str:
    """A line for each; the schedules are named where there are several."""
    if len(answers) == 1:
        return answers[0].sentence
    told = [(label_of(answer.schedule), answer.sentence) for answer in answers]
    return "\n".join(_("%(schedule)s: %(sentence)s") % {"schedule": label, "sentence": said} for label, said in told)


def answers_for(job: Job, instant: datetime, *, now: datetime) -> list[Answer]:
    """Of a job the caller was allowed to see: what each of its schedules has to say of the minute of that instant."""
    minute = instant.replace(second=0, microsecond=0)
    rows = list(_rows(job, minute))
    answered = {row.schedule_id for row in rows}
    answers = [Answer(row.schedule, row, reasons.sentence(row)) for row in rows]
    schedules = [schedule for schedule in schedules_of(job) if schedule.pk not in answered]
    answers += [Answer(schedule, None, _of_schedule(schedule, minute, now)) for schedule in schedules]
    return answers or [Answer(None, None, _("This job has no schedule: it runs only when somebody starts it."))]


def label_of(schedule: Schedule | None) -> str:
    """How people tell a schedule from others of its job."""
    if schedule is None:
        return _("A deleted schedule")
    if schedule.name:
        return _("Schedule “%(name)s”") % {"name": schedule.name}
    try:
        return words(rule_for(schedule))
    except BadRule:
        return _("Schedule %(number)d") % {"number": schedule.pk}


def _rows(job: Job, minute: datetime) -> Iterator[Firing]:
    """Oldest first; also those that stand for many times around it."""
    rows = Firing.objects.filter(job=job, scheduled_for__lt=minute + MINUTE)
    within = Q(scheduled_for__gte=minute) | Q(until__gte=minute)
    return reversed(rows.filter(within).select_related("schedule", "run").order_by("-scheduled_for", "-pk")[:MOST_ROWS])


def _of_schedule(schedule: Schedule, minute: datetime, now: datetime) -> str:
    if schedule.trouble:
        return _("It cannot fire: %(trouble)s") % {"trouble": schedule.trouble}
    try:
        rule = rule_for(schedule)
    except BadRule as error:
        return _("It cannot fire: %(trouble)s") % {"trouble": error.message}
    slot = rule.after(minute - _INSTANT)
    if slot is None or slot >= minute + MINUTE:
        return _no_such_time(schedule, rule, minute)
    return _outside(schedule, slot) or (_to_come if slot > now else _not_fired)(schedule, slot, now)


def _no_such_time(schedule: Schedule, rule: Rule, minute: datetime) -> str:
    """With the next one, which shows whether the zone was meant otherwise."""
    told = _("By its rule (%(words)s) it is not due at that time.") % {"words": words(rule)}
    following = rule.after(minute)
    if following is not None and following < LAST:
        told += " " + _("The next time after it is %(at)s.") % {"at": _wall(schedule, following)}
    return told


def _outside(schedule: Schedule, slot: datetime) -> str:
    if schedule.start_at is not None and slot < schedule.start_at:
        return _("It begins only on %(at)s.") % {"at": _wall(schedule, schedule.start_at)}
    if schedule.end_at is not None and slot > schedule.end_at:
        return _("It has ended on %(at)s.") % {"at": _wall(schedule, schedule.end_at)}
    return ""


def _to_come(schedule: Schedule, slot: datetime, now: datetime) -> str:
    if not schedule.enabled:
        return _("It is switched off.")
    if is_paused(schedule, slot):
        return _("It is still to come, and will be skipped: the schedule is paused.")
    if clock().off_since is not None:
        return _("It is still to come, and will be skipped unless scheduling is switched on before.")
    return _("It is still to come: %(at)s.") % {"at": _wall(schedule, slot)}


def _not_fired(schedule: Schedule, slot: datetime, now: datetime) -> str:
    """It has passed, and the ledger does not know of it."""
    if slot <= schedule.created_at:
        return _("The schedule was not there yet: it was made on %(at)s.") % {
            "at": _wall(schedule, schedule.created_at)
        }
    if was_off := _switched_off(schedule, slot):
        return was_off
    if schedule.next_slot_at is not None and schedule.next_slot_at <= slot and schedule.next_fire_at is not None:
        return _waiting(schedule, slot, now)
    if (changed := _change_after(schedule, slot)) is not None:
        who, at = changed.user.get_username(), _wall(schedule, changed.action_time)
        return _("%(user)s changed the schedule on %(at)s, after that time: by the rule of then it was not due.") % {
            "user": who,
            "at": at,
        }
    if not schedule.enabled:
        return _("It is switched off.")
    if schedule.updated_at > slot:
        return _("The schedule was changed on %(at)s, after that time.") % {"at": _wall(schedule, schedule.updated_at)}
    return _("The ledger knows nothing of that time: the schedule was changed in the admin, or the clock was set.")


def _waiting(schedule: Schedule, slot: datetime, now: datetime) -> str:
    starts = fire_at(schedule, slot)
    if starts > now:
        return _("It is due; its jitter lets it start at %(at)s.") % {"at": _wall(schedule, starts, seconds=True)}
    late = now - starts
    if late <= ON_TIME:
        return _("It is due and starts in a moment.")
    return _("It is due, but the scheduler is late by %(span)s: is the process “beat” running?") % {
        "span": span(round(late.total_seconds()))
    }


def _switched_off(schedule: Schedule, slot: datetime) -> str:
    """By the log of changes; what was switched in the admin's table of tasks is not there."""
    notes = _notes(schedule).filter(change_message__in=("enabled", "disabled"))
    last = notes.filter(action_time__lte=slot).order_by("-action_time", "-pk").first()
    if last is None or last.change_message != "disabled":
        return ""
    who, at = last.user.get_username(), _wall(schedule, last.action_time)
    return _("It was switched off by %(user)s on %(at)s.") % {"user": who, "at": at}


def _change_after(schedule: Schedule, slot: datetime) -> LogEntry | None:
    """The first change of its rule after that time."""
    notes = _notes(schedule).filter(action_time__gt=slot, change_message__startswith=_CHANGED)
    for note in notes.order_by("action_time", "pk")[:MOST_ROWS]:
        if _RULE & {*note.change_message.removeprefix(_CHANGED).split(", ")}:
            return note
    return None


def _notes(schedule: Schedule) -> QuerySet[LogEntry]:
    kind = ContentType.objects.get_for_model(Schedule)
    return LogEntry.objects.filter(content_type=kind, object_id=str(schedule.pk)).select_related("user")


def _wall(schedule: Schedule, instant: datetime, *, seconds: bool = False) -> str:
    """By the clock of the schedule's zone."""
    try:
        zone = rule_for(schedule).zone
    except BadRule:
        return f"{instant:%Y-%m-%d %H:%M} UTC"
    shape = "%Y-%m-%d %H:%M:%S" if seconds or instant.second else "%Y-%m-%d %H:%M"
    return f"{instant.astimezone(zone).strftime(shape)} {zone.key}"
