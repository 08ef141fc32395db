"""Making, changing and deleting schedules."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from apps.core.actors import Actor
from apps.core.changes import ADDITION, DELETION, note_change
from apps.core.errors import Conflict, Invalid
from apps.jobs.models import Job, Schedule
from apps.jobs.policies import Faults
from apps.jobs.selectors.due import fire_at
from apps.jobs.services.ledger import account_overdue
from apps.jobs.services.locking import locked_job
from apps.jobs.services.schedules.checks import RULE, SAID, check_jitter, take_plain, take_rule
from apps.jobs.services.schedules.compiling import aim, recompile
from apps.jobs.services.schedules.locking import locked_schedule
from apps.jobs.services.schedules.overrides import take_parameters
from apps.jobs.services.schedules.rows import drop_unused, make_rows, next_number, rewrite_rows, used_rows

_CHANGEABLE = frozenset({*RULE, "parameters", "jitter", "misfire", "enabled", "name"})


class ScheduleChanged(Conflict):
    code = "schedule_changed"


@transaction.atomic
def create_schedule(
    *,
    job: Job,
    by: Actor,
    now: datetime,
    type: str,
    cron: str = "",
    every: int | str | None = None,
    at: datetime | None = None,
    anchor_at: datetime | None = None,
    timezone: str = "UTC",
    start_at: datetime | None = None,
    end_at: datetime | None = None,
    parameters: Mapping[str, Any] | None = None,
    jitter: int | str = 0,
    misfire: Mapping[str, Any] | None = None,
    enabled: bool = True,
    name: str = "",
) -> Schedule:
    """Spans are seconds or texts such as "1h30m"; misfire is {"policy", "grace", "cap", "spacing"}, any of them.
    Intervals are counted from `anchor_at`, else from `start_at`, else from now.

    Raises Invalid with the faults by these names (`misfire.grace`, `parameters.<path>`).
    """
    # Under the lock of the job, so that one that is just being deleted leaves nothing behind.
    own = Schedule(pk=next_number(), job=locked_job(job), created_by_id=by.user_id, created_at=now, updated_at=now)
    own.type = ""
    changes = {
        "type": type,
        "cron": cron,
        "every": every,
        "at": at,
        "anchor_at": anchor_at,
        "timezone": timezone,
        "start_at": start_at,
        "end_at": end_at,
        "parameters": parameters or {},
        "jitter": jitter,
        "misfire": misfire,
        "enabled": enabled,
        "name": name,
    }
    _take(own, changes, now)
    own.task = make_rows(own)
    aim(own, now)
    own.save(force_insert=True)
    note_change(own, by, "created", ADDITION)
    return own


@transaction.atomic
def update_schedule(
    *, schedule: Schedule, by: Actor, now: datetime, seen: datetime | None = None, **changes: Any
) -> Schedule:
    """Change any of what `create_schedule` takes; what is not named stays. New times are reckoned from now.

    `seen` is the `updated_at` that the person had before their eyes: when somebody has changed it since, Conflict.
    """
    if unknown := changes.keys() - _CHANGEABLE:
        raise TypeError(f"not a field of a schedule that can be changed: {', '.join(sorted(unknown))}")
    own = locked_schedule(schedule)
    if seen is not None and own.updated_at != seen:
        raise ScheduleChanged(_("Somebody has changed this schedule meanwhile: look at it again."))
    if own.stale:
        # Somebody has just changed its rows in the admin: what is not named here stays as they said.
        account_overdue(schedule=own, now=now)
        recompile(schedule=own, now=now)
    stored = {field.attname: getattr(own, field.attname) for field in Schedule._meta.concrete_fields}
    another_rule = _take(own, changes, now)
    if all(getattr(own, name) == value for name, value in stored.items()):
        return own
    if another_rule or own.enabled != stored["enabled"]:
        # By its times as they were.
        account_overdue(schedule=Schedule(**stored), now=now)
        own.trouble = "" if another_rule else own.trouble
        aim(own, now)
    elif own.next_slot_at and own.jitter_seconds != stored["jitter_seconds"]:
        own.next_fire_at = fire_at(own, own.next_slot_at)
    rewrite_rows(own, rule=another_rule)
    own.stale, own.updated_at = False, now
    own.save()
    _note(own, stored, by)
    return own


def set_enabled(*, schedule: Schedule, by: Actor, now: datetime, enabled: bool) -> Schedule:
    """Times that pass while it is off are no times at all. Twice is once."""
    return update_schedule(schedule=schedule, by=by, now=now, enabled=enabled)


@transaction.atomic
def delete_schedule(*, schedule: Schedule, by: Actor, now: datetime) -> None:
    """With its rows of django-celery-beat; its runs and its ledger stay."""
    own = locked_schedule(schedule)
    account_overdue(schedule=own, now=now)
    used = used_rows([own.task_id])
    note_change(own, by, "deleted", DELETION)
    # The periodic task goes with it, by a trigger.
    own.delete()
    drop_unused(used)


def _take(own: Schedule, changes: Mapping[str, Any], now: datetime) -> bool:
    """Check everything, so that a person sees all faults at once. Whether its rule is another than before."""
    faults: Faults = {}
    take_plain(own, changes, faults=faults)
    another_rule = take_rule(own, changes, now=now, faults=faults)
    if another_rule or "jitter" in changes:
        check_jitter(own, now=now, faults=faults)
    if "parameters" in changes:
        take_parameters(own, changes["parameters"], now=now, faults=faults)
    if faults:
        raise Invalid(_("Some of this cannot be taken."), fields=faults)
    return another_rule


def _note(own: Schedule, stored: Mapping[str, Any], by: Actor) -> None:
    """Whether it was on at some time can be read from the log of changes: that has a line of its own."""
    if own.enabled != stored["enabled"]:
        note_change(own, by, "enabled" if own.enabled else "disabled")
    changed = {name for column, name in SAID.items() if getattr(own, column) != stored[column]}
    if changed:
        note_change(own, by, f"changed: {', '.join(sorted(changed))}")
