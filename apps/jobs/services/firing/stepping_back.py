"""The clock of the database: how far it has come, and what to do when it was set back."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Q

from apps.jobs.models import Clock, Firing, Outcome, Schedule
from apps.jobs.selectors.due import rule_for
from apps.jobs.services.firing.keeping import Keeper
from apps.jobs.services.firing.transactions import short_transaction
from apps.jobs.timing import BadRule

logger = logging.getLogger(__name__)

# How often it is written down, and how far back it may seem to go.
SEEN_EVERY = timedelta(seconds=5)

_SEEN = """
INSERT INTO jobs_clock AS c (id, off_by, off_why, seen_at) VALUES (1, '', '', %s)
ON CONFLICT (id) DO UPDATE SET seen_at = EXCLUDED.seen_at WHERE c.seen_at IS NULL OR c.seen_at < EXCLUDED.seen_at
"""
# Rows of several times, some of them past and some ahead: each the last one of its schedule that has begun.
_ACROSS = """
SELECT f.id FROM jobs_schedule s CROSS JOIN LATERAL (
    SELECT id, until, outcome FROM jobs_firing WHERE schedule_id = s.id AND scheduled_for <= %s
    ORDER BY scheduled_for DESC LIMIT 1
) f WHERE f.until > %s AND f.outcome = 'missed'
"""


def note_clock(*, keeper: Keeper, seen_at: datetime | None, now: datetime) -> bool:
    """Whether it was set back. `seen_at` is what was written down last."""
    if seen_at is not None and seen_at - now > SEEN_EVERY:
        _step_back(keeper, now)
        return True
    if seen_at is None or now - seen_at >= SEEN_EVERY:
        with short_transaction(keeper.after_commit), connection.cursor() as cursor:
            cursor.execute(_SEEN, [now])
    return False


def _step_back(keeper: Keeper, now: datetime) -> None:
    """Times that lie ahead again are not missed: they will come. What was fired for them stays fired."""
    with short_transaction(keeper.after_commit):
        clock = Clock.objects.select_for_update().get(pk=1)
        if clock.seen_at is None or clock.seen_at - now <= SEEN_EVERY:
            return
        logger.warning("the clock of the database was set back from %s to %s", clock.seen_at, now)
        with connection.cursor() as cursor:
            cursor.execute(_ACROSS, [now, now])
            across = [pk for (pk,) in cursor.fetchall()]
        # By schedule: there is no index of all times, and the ledger may be long.
        ahead = Firing.objects.filter(schedule__in=Schedule.objects.all(), scheduled_for__gt=now)
        moved_on: set[int | None] = set(ahead.values_list("schedule_id", flat=True))
        for firing in Firing.objects.filter(pk__in=across).select_related("schedule"):
            _shorten(firing, now)
            moved_on.add(firing.schedule_id)
        ahead.filter(outcome=Outcome.MISSED).delete()
        # What was changed by the clock of then reckoned its next time from there.
        Schedule.objects.filter(Q(pk__in=moved_on) | Q(updated_at__gt=now)).update(stale=True)
        Clock.objects.filter(pk=1).update(seen_at=now)


def _shorten(firing: Firing, now: datetime) -> None:
    """A row of several times keeps those that are past."""
    times = 1
    last = firing.scheduled_for
    if firing.schedule is not None:
        try:
            rest = rule_for(firing.schedule).between(firing.scheduled_for, now, firing.times)
        except BadRule:
            rest = []
        if rest:
            times, last = 1 + len(rest), rest[-1]
    Firing.objects.filter(pk=firing.pk).update(until=last if times > 1 else None, times=times)
