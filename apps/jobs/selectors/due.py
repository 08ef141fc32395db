"""When a compiled schedule is due: its rule within its first and last day, and how far its jitter moves each time."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from apps.jobs.models import Schedule
from apps.jobs.timing import Rule, rule_of

_INSTANT = timedelta(microseconds=1)


def rule_for(schedule: Schedule) -> Rule:
    """Or BadRule, when what was compiled cannot be kept any more."""
    return rule_of(
        type=schedule.type,
        expression=schedule.expression,
        every_seconds=schedule.every_seconds,
        anchor_at=schedule.anchor_at,
        once_at=schedule.once_at,
        timezone=schedule.timezone,
    )


def slot_after(schedule: Schedule, instant: datetime, *, rule: Rule | None = None) -> datetime | None:
    """Its first nominal time later than the instant, within `start_at` and `end_at`, both included."""
    since = instant if schedule.start_at is None else max(instant, schedule.start_at - _INSTANT)
    slot = (rule or rule_for(schedule)).after(since)
    return None if slot is None or (schedule.end_at is not None and slot > schedule.end_at) else slot


def fire_at(schedule: Schedule, slot: datetime) -> datetime:
    """The nominal time, later by the jitter: another one for each time, and the same whoever asks."""
    if not schedule.jitter_seconds:
        return slot
    key = f"{schedule.pk}:{int(slot.timestamp())}".encode()
    share = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big")
    return slot + timedelta(seconds=share % (schedule.jitter_seconds + 1))


def is_paused(schedule: Schedule, now: datetime) -> bool:
    """A pause may have an end: after it the schedule fires again by itself."""
    if schedule.paused_at is None or now < schedule.paused_at:
        return False
    return schedule.paused_until is None or now < schedule.paused_until
