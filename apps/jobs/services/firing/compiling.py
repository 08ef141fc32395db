"""Schedules whose rows were changed behind their compiled copies."""

from __future__ import annotations

import logging
from datetime import datetime

from apps.jobs.models import Schedule
from apps.jobs.services.firing.keeping import Keeper
from apps.jobs.services.firing.transactions import is_connected, short_transaction
from apps.jobs.services.ledger import account_overdue
from apps.jobs.services.schedules.compiling import recompile_all

logger = logging.getLogger(__name__)

_AT_ONCE = 200


def compile_stale(*, keeper: Keeper, now: datetime | None = None) -> int:
    """Read some of what was changed behind the compiled copies anew; how many. The rest waits for what is due."""
    try:
        return _compile(keeper, now, _AT_ONCE)
    except Exception:
        if not is_connected():
            raise
        logger.exception("changed schedules could not be compiled together")
        return _compile_apart(keeper, now)


def _compile(keeper: Keeper, now: datetime | None, most: int, only: int | None = None) -> int:
    with short_transaction(keeper.after_commit) as clock:
        stale = Schedule.objects.select_for_update(no_key=True, skip_locked=True).filter(stale=True)
        stale = stale.exclude(pk__in=keeper.put_off_now()) if only is None else stale.filter(pk=only)
        schedules = list(stale.order_by("pk")[:most])
        for schedule in schedules:
            account_overdue(schedule=schedule, now=now or clock)
        recompile_all(schedules=schedules, now=now or clock)
    return len(schedules)


def _compile_apart(keeper: Keeper, now: datetime | None) -> int:
    stale = Schedule.objects.filter(stale=True).exclude(pk__in=keeper.put_off_now())
    done = 0
    for pk in list(stale.order_by("pk").values_list("pk", flat=True)[:_AT_ONCE]):
        try:
            done += _compile(keeper, now, 1, only=pk)
        except Exception:
            logger.exception("schedule %d could not be compiled", pk)
            keeper.failed(pk)
    return done
