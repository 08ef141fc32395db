"""From a schedule to the decision about what is due of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from apps.jobs.models import Schedule
from apps.jobs.selectors.due import fire_at, rule_for, slot_after
from apps.jobs.services.firing.decisions import Decision, Due, Policy, decide
from apps.jobs.timing import Rule

# Of one schedule no more due times are counted out in one step, beyond those that may still be fired.
STEP = 1100


@dataclass(frozen=True, slots=True)
class Step:
    """What is decided about a schedule, and where it stands afterwards."""

    schedule: Schedule
    decision: Decision
    next_slot_at: datetime | None
    next_fire_at: datetime | None
    counted: int

    @property
    def slot(self) -> datetime | None:
        return self.decision.fire.slot if self.decision.fire else None


def step_of(schedule: Schedule, now: datetime) -> Step:
    """Raises BadRule when its rule cannot be kept any more."""
    rule = rule_for(schedule)
    policy = Policy.of(schedule)
    due, more = due_times(schedule, rule, now, most=STEP + policy.kept)
    decision = decide(due, more=more, now=now, policy=policy)
    if decision.rest:
        first = decision.rest[0]
        wanted = max(first.fire_at, decision.not_before) if decision.not_before else first.fire_at
        return Step(schedule, decision, first.slot, wanted, len(due))
    if due:
        following = slot_after(schedule, due[-1].slot, rule=rule)
    else:
        following = schedule.next_slot_at or slot_after(schedule, now, rule=rule)
    return Step(schedule, decision, following, fire_at(schedule, following) if following else None, len(due))


def due_times(schedule: Schedule, rule: Rule, now: datetime, *, most: int) -> tuple[Sequence[Due], bool]:
    """The times of the schedule that have come, oldest first, and whether there are still more."""
    first = schedule.next_slot_at
    if first is None:
        return (), False
    end = now if schedule.end_at is None else min(now, schedule.end_at)
    slots = [first, *rule.between(first, end, most)] if first <= end else [first]
    due: list[Due] = []
    for slot in slots:
        at = fire_at(schedule, slot)
        if at > now:
            return due, False
        due.append(Due(slot, at))
    return due, len(due) > most
