"""New rules of a time zone move the next times of its schedules. Looked at once, at the start of a clock."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from apps.jobs.models import Clock, Schedule, ScheduleType
from apps.jobs.selectors.due import fire_at, slot_after
from apps.jobs.services.firing.transactions import short_transaction
from apps.jobs.timing import BadRule, zone_of

logger = logging.getLogger(__name__)

_AT_ONCE = 200
_YEARS = 2


@dataclass(slots=True)
class Review:
    """How far it has come; over when nothing is left of `zones`. None: not begun."""

    zones: dict[str, str] | None = None
    behind: int = 0


def review_zones(*, review: Review, now: datetime) -> bool:
    """Some of them; whether there is more to do. Times that have come already are left to whoever fires them."""
    if review.zones is None:
        review.zones = _changed(now)
    if not review.zones:
        return False
    with short_transaction():
        _review_some(review, review.zones, now)
    return True


def _review_some(review: Review, zones: Mapping[str, str], now: datetime) -> None:
    some = Schedule.objects.filter(
        pk__gt=review.behind,
        timezone__in=zones,
        type=ScheduleType.CRON,
        enabled=True,
        stale=False,
        next_slot_at__gt=now,
    )
    locked = some.select_for_update(no_key=True, skip_locked=True).order_by("pk")
    for schedule in locked[:_AT_ONCE]:
        _aim(schedule, now)
        review.behind = schedule.pk
    if not some.filter(pk__gt=review.behind).exists():
        clock, _new = Clock.objects.get_or_create(pk=1)
        Clock.objects.filter(pk=1).update(zones={**clock.zones, **zones})
        review.zones = {}


def _aim(schedule: Schedule, now: datetime) -> None:
    try:
        slot = slot_after(schedule, now)
    except BadRule:
        # Found out when it is due.
        return
    if slot == schedule.next_slot_at:
        return
    logger.warning("schedule %d is due at %s by new rules of %s", schedule.pk, slot, schedule.timezone)
    found = fire_at(schedule, slot) if slot else None
    Schedule.objects.filter(pk=schedule.pk).update(next_slot_at=slot, next_fire_at=found)


def _changed(now: datetime) -> dict[str, str]:
    """Zones in use whose rules are not those by which times were reckoned, as far as anybody knows."""
    clock = Clock.objects.filter(pk=1).first()
    known = clock.zones if clock else {}
    used = Schedule.objects.filter(type=ScheduleType.CRON, enabled=True, next_slot_at__isnull=False)
    found = {name: _digest(name, now) for name in set(used.values_list("timezone", flat=True).distinct())}
    return {name: digest for name, digest in found.items() if digest and known.get(name) != digest}


def _digest(name: str, now: datetime) -> str:
    """Of the offsets of the next years; empty for a zone that has no rules that could change."""
    if name == "UTC" or name.startswith("Etc/"):
        return ""
    try:
        zone: ZoneInfo = zone_of(name)
    except BadRule:
        return ""
    first = datetime(now.year, 1, 1, tzinfo=UTC)
    hours = (first + timedelta(hours=number) for number in range(_YEARS * 366 * 24))
    offsets = [str(hour.astimezone(zone).utcoffset()) for hour in hours]
    return f"{now.year}:{hashlib.blake2b(' '.join(offsets).encode(), digest_size=16).hexdigest()}"
