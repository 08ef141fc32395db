"""The ledger: one row for each due time and what became of it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from apps.core.many_rows import insert_many
from apps.jobs.models import Firing, Outcome, Schedule
from apps.jobs.selectors.due import rule_for
from apps.jobs.signals import times_missed
from apps.jobs.timing import BadRule

logger = logging.getLogger(__name__)

# More missed times of one schedule than that share one row.
MOST_ROWS = 1000
LATE, CHANGED = "misfire_skip", "schedule_changed"
# Overdue times are counted out in such steps, at most so many.
_STEP, _MOST_STEPS = 1100, 100


def firing_of(
    schedule: Schedule,
    slot: datetime,
    now: datetime,
    outcome: str,
    reason: str = "",
    *,
    detail: dict[str, Any] | None = None,
    run_id: int | None = None,
) -> Firing:
    """A row that is not written yet."""
    return Firing(
        job_id=schedule.job_id,
        schedule=schedule,
        scheduled_for=slot,
        outcome=outcome,
        reason=reason,
        detail=detail or {},
        run_id=run_id,
        decided_at=now,
    )


def write_missed(schedule: Schedule, slots: Sequence[datetime], now: datetime, *, reason: str = LATE) -> None:
    """Those that are in the ledger already, from before the clock was set back, stay as they are."""
    if not slots:
        return
    if not _lengthened(schedule, slots, now, reason):
        rows = [firing_of(schedule, slot, now, Outcome.MISSED, reason) for slot in slots[: MOST_ROWS + 1]]
        if len(slots) > MOST_ROWS:
            del rows[1:]
            rows[0].until, rows[0].times = slots[-1], len(slots)
        insert_many(rows, pass_over=True)
    logger.warning(
        "schedule %d of job %d missed %d due times (%s), the last of %s",
        schedule.pk,
        schedule.job_id,
        len(slots),
        reason,
        slots[-1].isoformat(),
    )
    told: dict[str, Any] = {"schedule_id": schedule.pk, "job_id": schedule.job_id, "reason": reason}
    told |= {"times": len(slots), "last": slots[-1]}
    transaction.on_commit(lambda: _tell(told))


def _lengthened(schedule: Schedule, slots: Sequence[datetime], now: datetime, reason: str) -> bool:
    """Whether a shared row of the step before goes on with these times."""
    rows = Firing.objects.filter(schedule=schedule, outcome=Outcome.MISSED, reason=reason, until__lt=slots[0])
    last = rows.order_by("-scheduled_for").first()
    if last is None or last.until is None:
        return False
    try:
        goes_on = rule_for(schedule).after(last.until) == slots[0]
    except BadRule:
        return False
    if goes_on:
        Firing.objects.filter(pk=last.pk).update(until=slots[-1], times=F("times") + len(slots), decided_at=now)
    return goes_on


def _tell(told: dict[str, Any]) -> None:
    for receiver, answer in times_missed.send_robust(Schedule, **told):
        if isinstance(answer, Exception):
            logger.error("%s failed to hear of missed times", receiver, exc_info=answer)


def already_written(pairs: Iterable[tuple[Schedule, datetime]]) -> set[tuple[int, datetime]]:
    """Times that are in the ledger: the clock came by them before it was set back. They are not fired twice."""
    wanted = {(schedule.pk, slot) for schedule, slot in pairs}
    rows = Firing.objects.filter(
        schedule__in={pk for pk, _slot in wanted}, scheduled_for__in={slot for _pk, slot in wanted}
    ).values_list("schedule_id", "scheduled_for")
    return set(rows) & wanted


def write(firings: Sequence[Firing]) -> None:
    insert_many(firings)


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
    slots = [first, *rule.between(first, end, _STEP)]
    for _step in range(_MOST_STEPS):
        if not slots:
            break
        write_missed(schedule, slots, now, reason=CHANGED)
        count += len(slots)
        slots = rule.between(slots[-1], end, _STEP)
    return count
