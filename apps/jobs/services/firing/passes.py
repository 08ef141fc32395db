"""One pass over what is due: taken under locks, decided, launched, written down and moved on, in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import InterfaceError, OperationalError, connection
from django.db.models import QuerySet

from apps.jobs.models import Firing, Outcome, Schedule
from apps.jobs.selectors.lateness import ON_TIME
from apps.jobs.services.firing.holding import Holds, holds
from apps.jobs.services.firing.keeping import MOST_TRIES, Keeper
from apps.jobs.services.firing.launches import Wanted, launch_alone, launch_together
from apps.jobs.services.firing.reckoning import Step, step_of
from apps.jobs.services.firing.transactions import is_connected, short_transaction
from apps.jobs.services.ledger import already_written, firing_of, write, write_missed
from apps.jobs.timing import BadRule

logger = logging.getLogger(__name__)

# Each late one may bring a thousand missed times with it.
LATE_AT_ONCE = 20
MOST_COUNTED = 5000
BROKEN = "internal_error"

_ADVANCE = """
UPDATE jobs_schedule AS s SET next_slot_at = v.slot, next_fire_at = v.fire
FROM unnest(%s::bigint[], %s::timestamptz[], %s::timestamptz[]) AS v(id, slot, fire) WHERE s.id = v.id
"""


@dataclass(slots=True)
class Done:
    """How many schedules were moved on; those that have to be fired `alone`."""

    moved: int = 0
    alone: list[int] = field(default_factory=list)


def fire_some(*, keeper: Keeper, overdue: bool, now: datetime | None = None) -> Done:
    """Some of what is due, on time or else late; what fails together is tried alone."""
    taken: list[int] = []
    try:
        done = _together(keeper, overdue, now, taken)
        keeper.quick()
    except Exception:
        if not is_connected():
            keeper.slow()
            raise
        logger.exception("due times could not be fired together")
        done = Done(alone=taken)
    for pk in done.alone:
        if keeper.goes_on():
            done.moved += fire_alone(keeper=keeper, schedule_id=pk, now=now)
    return done


def _together(keeper: Keeper, overdue: bool, now: datetime | None, taken: list[int]) -> Done:
    with short_transaction(keeper.after_commit) as clock:
        now = now or clock
        due = _due(now, overdue).exclude(pk__in=keeper.put_off_now())
        schedules = list(due[: min(LATE_AT_ONCE, keeper.at_once) if overdue else keeper.at_once])
        taken += [schedule.pk for schedule in schedules]
        if not schedules:
            return Done()
        steps = _steps(schedules, keeper, now)
        wanted, firings = _sorted(steps, holds(), now)
        launched = launch_together(wanted=wanted, now=now)
        for each in launched.busy:
            keeper.put_off(each.schedule.pk)
        alone = [each.schedule.pk for each in launched.alone]
        left = {*alone, *(each.schedule.pk for each in launched.busy)}
        moved = [step for step in steps if step.schedule.pk not in left]
        _write(moved, [*firings, *launched.firings], now)
    for step in moved:
        keeper.done(step.schedule.pk)
    return Done(len(moved), alone)


def _due(now: datetime, overdue: bool) -> QuerySet[Schedule]:
    due = Schedule.objects.select_for_update(no_key=True, skip_locked=True).filter(enabled=True, stale=False)
    late = now - ON_TIME
    due = due.filter(next_fire_at__lte=late) if overdue else due.filter(next_fire_at__gt=late, next_fire_at__lte=now)
    return due.order_by("next_fire_at", "pk")


def _steps(schedules: Sequence[Schedule], keeper: Keeper, now: datetime) -> list[Step]:
    steps: list[Step] = []
    counted = 0
    for schedule in schedules:
        try:
            steps.append(step_of(schedule, now))
        except BadRule as error:
            _stop(schedule, error)
        except Exception:
            logger.exception("the times of schedule %d cannot be reckoned", schedule.pk)
            keeper.failed(schedule.pk)
        else:
            counted += steps[-1].counted
            if counted > MOST_COUNTED:
                break
    return steps


def _stop(schedule: Schedule, error: BadRule) -> None:
    logger.warning("schedule %d cannot fire any more: %s", schedule.pk, error.message)
    Schedule.objects.filter(pk=schedule.pk).update(trouble=error.message, next_slot_at=None, next_fire_at=None)


def _sorted(steps: Sequence[Step], held: Holds, now: datetime) -> tuple[list[Wanted], list[Firing]]:
    """What is to be launched, and ledger rows of what is not."""
    wanted: list[Wanted] = []
    firings: list[Firing] = []
    known = already_written((step.schedule, step.slot) for step in steps if step.slot is not None)
    for step in steps:
        if step.slot is None or (step.schedule.pk, step.slot) in known:
            continue
        if hold := held.of(step.schedule, step.slot):
            firings.append(
                firing_of(step.schedule, step.slot, now, Outcome.SKIPPED, hold.reason, detail=dict(hold.detail))
            )
        else:
            wanted.append(Wanted(step.schedule, step.slot))
    return wanted, firings


def _write(steps: Sequence[Step], firings: Sequence[Firing], now: datetime) -> None:
    for step in steps:
        write_missed(step.schedule, step.decision.missed, now)
    write(firings)
    ids = [step.schedule.pk for step in steps]
    slots = [step.next_slot_at for step in steps]
    with connection.cursor() as cursor:
        cursor.execute(_ADVANCE, [ids, slots, [step.next_fire_at for step in steps]])


# -- one by one ---------------------------------------------------------------------------------------------------


def fire_alone(*, keeper: Keeper, schedule_id: int, now: datetime | None = None) -> bool:
    """Whether it was moved on. What is broken for good ends in the ledger as that."""
    try:
        moved = _alone(keeper, schedule_id, now)
    except (OperationalError, InterfaceError):
        # Not of its making: a lock, a full disk, a database that goes down.
        if not is_connected():
            raise
        logger.exception("schedule %d could not be fired now", schedule_id)
        keeper.failed(schedule_id)
        return False
    except Exception as error:
        if not is_connected():
            raise
        logger.exception("schedule %d could not be fired", schedule_id)
        if keeper.failed(schedule_id) < MOST_TRIES:
            return False
        return _give_up(keeper, schedule_id, error, now)
    if moved:
        keeper.done(schedule_id)
    return moved


def _alone(keeper: Keeper, schedule_id: int, now: datetime | None) -> bool:
    with short_transaction(keeper.after_commit) as clock:
        now = now or clock
        steps = _steps(list(_due_alone(schedule_id, now)), keeper, now)
        wanted, firings = _sorted(steps, holds(), now)
        for each in wanted:
            firing = launch_alone(wanted=each, now=now)
            if firing is None:
                keeper.put_off(schedule_id)
                return False
            firings.append(firing)
        if steps:
            _write(steps, firings, now)
    return bool(steps)


def _due_alone(schedule_id: int, now: datetime) -> QuerySet[Schedule]:
    locked = Schedule.objects.select_for_update(no_key=True, skip_locked=True)
    return locked.filter(pk=schedule_id, enabled=True, stale=False, next_fire_at__lte=now)


def _give_up(keeper: Keeper, schedule_id: int, error: Exception, now: datetime | None) -> bool:
    detail = {"error": type(error).__name__}
    try:
        with short_transaction(keeper.after_commit) as clock:
            now = now or clock
            steps = _steps(list(_due_alone(schedule_id, now)), keeper, now)
            wanted, firings = _sorted(steps, holds(), now)
            firings += [
                firing_of(each.schedule, each.slot, now, Outcome.FAILED, BROKEN, detail=detail) for each in wanted
            ]
            if steps:
                _write(steps, firings, now)
    except Exception:
        if not is_connected():
            raise
        logger.exception("the ledger of schedule %d could not be written", schedule_id)
        return False
    return bool(steps)
