"""The one switch that stops all scheduling."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from apps.core.actors import Actor
from apps.core.changes import note_change
from apps.core.errors import Invalid
from apps.jobs.models import Clock
from apps.jobs.policies import Faults
from apps.jobs.services.schedules.pausing import checked_reason


@transaction.atomic
def scheduling_off(*, by: Actor, now: datetime, why: str) -> None:
    """No schedule fires until it is on again. Said again it changes the reason only."""
    faults: Faults = {}
    text = checked_reason(why, name="why", faults=faults)
    if faults:
        raise Invalid(_("Some of this cannot be taken."), fields=faults)
    clock = _clock()
    Clock.objects.filter(pk=clock.pk).update(off_since=clock.off_since or now, off_by=str(by)[:200], off_why=text)
    note_change(clock, by, f"scheduling_off: {text}")


@transaction.atomic
def scheduling_on(*, by: Actor, now: datetime) -> None:
    """Times that have passed stay skipped."""
    clock = _clock()
    if clock.off_since is not None:
        last = {
            "since": clock.off_since.isoformat(),
            "until": now.isoformat(),
            "by": clock.off_by,
            "why": clock.off_why,
        }
        Clock.objects.filter(pk=clock.pk).update(off_since=None, off_by="", off_why="", last_off=last)
        note_change(clock, by, "scheduling_on")


def _clock() -> Clock:
    return Clock.objects.select_for_update().get_or_create(pk=1)[0]
