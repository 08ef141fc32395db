"""The checker of the ledger finds what it is for; planted faults, without a panel."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from apps.jobs.timing import rule_of
from tests.chaos.slots import Fired, Made, Timed, each_time_once, in_time

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SCHEDULE = Timed(1, rule_of(type="cron", expression="* * * * *"))
RUNS = [Made(10 + number, 1, NOON + number * MINUTE) for number in range(1, 6)]
LEDGER = [Fired(1, run.slot, "fired", "", run.id, run.slot + MINUTE / 60) for run in RUNS]


def faults(ledger: list[Fired], runs: list[Made]) -> list[str]:
    return each_time_once([SCHEDULE], ledger, runs, since=NOON, until=NOON + 5 * MINUTE)


def test_a_whole_ledger_has_no_faults() -> None:
    assert faults(LEDGER, RUNS) == []
    assert in_time(LEDGER, most=MINUTE) == []


def test_a_row_may_stand_for_several_times() -> None:
    shared = Fired(1, NOON + MINUTE, "missed", "misfire_skip", None, NOON, NOON + 3 * MINUTE, 3)
    assert faults([shared, *LEDGER[3:]], RUNS[3:]) == []


@pytest.mark.parametrize(
    ("ledger", "runs", "word"),
    [
        (LEDGER[1:], RUNS[1:], "nothing is said"),
        ([*LEDGER, LEDGER[0]], RUNS, "2 times"),
        (LEDGER, [*RUNS, replace(RUNS[0], id=99)], "2 runs"),
        (LEDGER[1:], RUNS, "no ledger knows"),
        ([replace(LEDGER[0], run=None), *LEDGER[1:]], RUNS[1:], "without a run"),
        ([replace(LEDGER[0], run=12), *LEDGER[1:]], RUNS, "of another time"),
        ([*LEDGER, Fired(1, NOON + MINUTE / 2, "skipped", "paused", None, NOON)], RUNS, "none of its times"),
    ],
)
def test_every_breach_is_found(ledger: list[Fired], runs: list[Made], word: str) -> None:
    assert any(word in fault for fault in faults(ledger, runs))


def test_what_came_late_is_found() -> None:
    assert in_time([replace(LEDGER[0], decided_at=NOON + 3 * MINUTE)], most=MINUTE) != []
