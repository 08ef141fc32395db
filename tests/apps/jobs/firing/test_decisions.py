"""What becomes of the due times of one schedule, decided without a database."""

from __future__ import annotations

from datetime import timedelta

import pytest

from apps.jobs.services.firing.decisions import Due, Policy, decide
from tests.apps.jobs.firing.timed import NOON

GRACE = timedelta(minutes=10)


def due(*ages: float) -> list[Due]:
    """Times so many seconds ago, the oldest first."""
    return [Due(NOON - timedelta(seconds=age), NOON - timedelta(seconds=age)) for age in ages]


def ages(slots: object) -> list[int]:
    found = [each.slot if isinstance(each, Due) else each for each in slots]  # type: ignore[attr-defined]
    return [int((NOON - slot).total_seconds()) for slot in found]


@pytest.mark.parametrize(
    ("misfire", "seconds", "missed", "fired", "rest"),
    [
        # On time, whatever the policy.
        ("once", [0], [], 0, []),
        ("skip", [60], [], 60, []),
        ("all", [60, 0], [], 60, [0]),
        ("once", [60, 30, 0], [], 60, [30, 0]),
        # Late: the newest within the grace, or nothing.
        ("once", [61], [], 61, []),
        ("once", [600], [], 600, []),
        ("once", [601], [601], None, []),
        ("once", [300, 180, 120], [300, 180], 120, []),
        ("once", [7200, 3600], [7200, 3600], None, []),
        ("once", [180, 120, 60, 0], [180], 120, [60, 0]),
        ("skip", [61], [61], None, []),
        ("skip", [300, 120, 60], [300, 120], 60, []),
        # All of them, the oldest first, at most so many.
        ("all", [9000], [], 9000, []),
        ("all", [300, 240, 180, 120], [300], 240, [180, 120]),
        ("all", [240, 180, 120, 60, 0], [], 240, [180, 120, 60, 0]),
        ("all", [], [], None, []),
    ],
)
def test_every_policy_decides_each_time_once(
    misfire: str, seconds: list[int], missed: list[int], fired: int | None, rest: list[int]
) -> None:
    decision = decide(due(*seconds), more=False, now=NOON, policy=Policy(misfire, GRACE, cap=3))
    assert ages(decision.missed) == missed
    assert ages([decision.fire] if decision.fire else []) == ([fired] if fired is not None else [])
    assert ages(decision.rest) == rest


@pytest.mark.parametrize(("misfire", "missed", "rest"), [("once", 1998, 2), ("skip", 1999, 1), ("all", 1996, 4)])
def test_what_is_missed_whatever_follows_is_decided_before_all_is_counted_out(
    misfire: str, missed: int, rest: int
) -> None:
    """The last of the 2 000 is on time."""
    counted = due(*range(2000 * 60 - 60, -60, -60))
    decision = decide(counted, more=True, now=NOON, policy=Policy(misfire, GRACE, cap=3))
    assert (len(decision.missed), decision.fire) == (missed - 1, None)
    assert len(decision.rest) == rest + 1


def test_lateness_is_counted_from_the_jitter() -> None:
    slot = NOON - timedelta(seconds=90)
    decision = decide([Due(slot, slot + timedelta(seconds=40))], more=False, now=NOON, policy=Policy("skip", GRACE))
    assert decision.fire is not None


@pytest.mark.parametrize(("spacing", "pause"), [(0, 0), (10, 10), (45, 30), (3600, 30)])
def test_the_pause_between_two_is_short_enough_to_catch_up(spacing: int, pause: int) -> None:
    policy = Policy("all", GRACE, cap=3, spacing=timedelta(seconds=spacing))
    decision = decide(due(240, 180, 120), more=False, now=NOON, policy=policy)
    wanted = NOON + timedelta(seconds=pause)
    assert (decision.not_before or NOON) == wanted


def test_what_is_on_time_needs_no_pause() -> None:
    policy = Policy("all", GRACE, cap=3, spacing=timedelta(seconds=30))
    assert decide(due(20, 0), more=False, now=NOON, policy=policy).not_before is None
