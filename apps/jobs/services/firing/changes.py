"""Due times that a change of their schedule overtakes."""

from __future__ import annotations

from datetime import datetime

from apps.jobs.models import Schedule
from apps.jobs.selectors.due import rule_for
from apps.jobs.services.firing.ledger import write_missed
from apps.jobs.services.firing.reckoning import STEP
from apps.jobs.timing import BadRule

CHANGED = "schedule_changed"
_MOST_STEPS = 100


def account_overdue(*, schedule: Schedule, now: datetime) -> int:
    """Write down as missed what was due by the rule of then and has not been fired; how many times that were.

    Whoever gives a schedule another rule, takes its times away or disables it calls this before, under the lock on its
    row: a change never fires the past, and the past is not silent about it.
    """
    first = schedule.next_slot_at
    if not schedule.enabled or first is None or first > now:
        return 0
    end = now if schedule.end_at is None else min(now, schedule.end_at)
    try:
        rule = rule_for(schedule)
    except BadRule:
        write_missed(schedule, [first], now, reason=CHANGED)
        return 1
    count = 0
    slots = [first, *rule.between(first, end, STEP)]
    for _step in range(_MOST_STEPS):
        if not slots:
            break
        write_missed(schedule, slots, now, reason=CHANGED)
        count += len(slots)
        slots = rule.between(slots[-1], end, STEP)
    return count
