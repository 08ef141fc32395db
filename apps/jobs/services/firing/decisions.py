"""What becomes of the due times of one schedule. Pure: it reads nothing and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from apps.jobs.models import Misfire, Schedule
from apps.jobs.selectors.lateness import ON_TIME


@dataclass(frozen=True, slots=True)
class Due:
    """A nominal time, and when it is fired: later by its jitter."""

    slot: datetime
    fire_at: datetime


@dataclass(frozen=True, slots=True)
class Policy:
    misfire: str
    grace: timedelta = timedelta(minutes=10)
    cap: int = 10
    spacing: timedelta = timedelta()

    @classmethod
    def of(cls, schedule: Schedule) -> Policy:
        return cls(
            misfire=schedule.misfire,
            grace=timedelta(seconds=schedule.misfire_grace_seconds),
            cap=schedule.misfire_cap,
            spacing=timedelta(seconds=schedule.misfire_spacing_seconds),
        )

    @property
    def kept(self) -> int:
        """The most late times that may still be fired."""
        return {Misfire.ONCE: 1, Misfire.ALL: self.cap}.get(Misfire(self.misfire), 0)


@dataclass(frozen=True, slots=True)
class Decision:
    """`missed` are over, `fire` is fired now, `rest` comes later, its first not before `not_before`."""

    missed: Sequence[datetime] = ()
    fire: Due | None = None
    rest: Sequence[Due] = ()
    not_before: datetime | None = None


def decide(due: Sequence[Due], *, more: bool, now: datetime, policy: Policy) -> Decision:
    """One step: at most one time is fired, so that what is fresh elsewhere need not wait for all of this schedule.

    `due` are the oldest first. `more`: there are still more of them than were counted out; then only what is missed
    whatever follows is decided.
    """
    late, fresh = _split(due, now)
    if more:
        over = len(late) - policy.kept
        return Decision(missed=[each.slot for each in late[:over]], rest=due[max(over, 0) :])
    made_up = late[-policy.kept :] if policy.kept else []
    if policy.misfire == Misfire.ONCE and made_up and now - made_up[0].fire_at > policy.grace:
        made_up = []
    missed = [each.slot for each in late[: len(late) - len(made_up)]]
    following = [*made_up, *fresh]
    if not following:
        return Decision(missed=missed)
    fire, rest = following[0], following[1:]
    pause = _pause(fire, rest, policy) if made_up else None
    return Decision(missed=missed, fire=fire, rest=rest, not_before=now + pause if pause else None)


def _split(due: Sequence[Due], now: datetime) -> tuple[Sequence[Due], Sequence[Due]]:
    """Those that are too late to be on time, and the others."""
    on_time = next((number for number, each in enumerate(due) if now - each.fire_at <= ON_TIME), len(due))
    return due[:on_time], due[on_time:]


def _pause(fire: Due, rest: Sequence[Due], policy: Policy) -> timedelta | None:
    """Between two that are made up for: as wanted, but short enough to catch up with the times that come meanwhile."""
    if not rest or policy.misfire != Misfire.ALL:
        return None
    return min(policy.spacing, (rest[0].slot - fire.slot) / 2)
