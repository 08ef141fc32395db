"""Pausing: due times are kept in the ledger as skipped until it ends."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from apps.core.actors import Actor
from apps.core.changes import note_change
from apps.core.errors import Invalid
from apps.jobs.models import Schedule
from apps.jobs.policies import Faults
from apps.jobs.selectors.due import is_paused
from apps.jobs.services.schedules.locking import locked_schedule

LONGEST_REASON = 200


@transaction.atomic
def pause_schedule(
    *, schedule: Schedule, by: Actor, now: datetime, reason: str, until: datetime | None = None
) -> Schedule:
    """Said again it changes the reason and the end."""
    faults: Faults = {}
    text = checked_reason(reason, name="reason", faults=faults)
    if until is not None and (until.tzinfo is None or until <= now):
        faults["until"] = [_("This time lies in the past.")]
    if faults:
        raise Invalid(_("Some of this cannot be taken."), fields=faults)
    own = locked_schedule(schedule)
    own.paused_at = own.paused_at if is_paused(own, now) else now
    own.paused_until, own.paused_why, own.paused_by = until, text, str(by)[:200]
    _save(own, now)
    note_change(own, by, f"paused: {text}")
    return own


@transaction.atomic
def resume_schedule(*, schedule: Schedule, by: Actor, now: datetime) -> Schedule:
    """Twice is once. The pause stays as one that has ended: a clock that comes by later skips what fell into it."""
    own = locked_schedule(schedule)
    if not is_paused(own, now):
        return own
    own.paused_until = now
    _save(own, now)
    note_change(own, by, "resumed")
    return own


def checked_reason(given: Any, *, name: str, faults: Faults) -> str:
    text = given.strip() if isinstance(given, str) else ""
    if not text or len(text) > LONGEST_REASON or not text.isprintable():
        faults[name] = [_("Say why in 1 to 200 printable characters: everybody reads it.")]
    return text


def _save(own: Schedule, now: datetime) -> None:
    own.updated_at = now
    own.save(update_fields=["paused_at", "paused_until", "paused_why", "paused_by", "updated_at"])
