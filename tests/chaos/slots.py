"""The ledger of due times, checked against the rules: of each time of each schedule exactly one row."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from apps.jobs.timing import Rule


@dataclass(frozen=True)
class Timed:
    """A schedule that was enabled all the time, and its rule."""

    id: int
    rule: Rule


@dataclass(frozen=True)
class Fired:
    """A row of the ledger. `run` is the number of its run, `until` and `times` those of a row of several times."""

    schedule: int
    slot: datetime
    outcome: str
    reason: str
    run: int | None
    decided_at: datetime
    until: datetime | None = None
    times: int = 1


@dataclass(frozen=True)
class Made:
    """A run that a schedule has made."""

    id: int
    schedule: int
    slot: datetime


def each_time_once(
    schedules: Iterable[Timed], ledger: Sequence[Fired], runs: Sequence[Made], *, since: datetime, until: datetime
) -> list[str]:
    """Of each time in since < t <= until one row; what was fired has its run, and no run is without a row."""
    faults: list[str] = []
    rows: dict[int, list[Fired]] = defaultdict(list)
    for row in ledger:
        rows[row.schedule].append(row)
    for schedule in schedules:
        wanted = schedule.rule.between(since, until, 10**6)
        told = Counter(slot for row in rows[schedule.id] for slot in _slots(schedule, row))
        faults += [f"schedule {schedule.id}: nothing is said of {slot}" for slot in wanted if slot not in told]
        faults += [f"schedule {schedule.id}: {slot} stands {times} times" for slot, times in told.items() if times > 1]
        faults += [
            f"schedule {schedule.id}: {slot} is none of its times"
            for slot in told
            if since < slot <= until and slot not in set(wanted)
        ]
    return faults + _runs_and_rows(ledger, runs)


def _slots(schedule: Timed, row: Fired) -> list[datetime]:
    if row.until is None:
        return [row.slot]
    return [row.slot, *schedule.rule.between(row.slot, row.until, row.times)]


def _runs_and_rows(ledger: Sequence[Fired], runs: Sequence[Made]) -> list[str]:
    faults: list[str] = []
    made = Counter((run.schedule, run.slot) for run in runs)
    faults += [f"schedule {pk}: {slot} has {times} runs" for (pk, slot), times in made.items() if times > 1]
    known = {run.id: run for run in runs}
    for row in ledger:
        if row.outcome == "fired" and row.run is None:
            faults.append(f"schedule {row.schedule}: {row.slot} was fired without a run")
        elif row.run is not None and (
            row.run not in known or (known[row.run].schedule, known[row.run].slot) != (row.schedule, row.slot)
        ):
            faults.append(f"schedule {row.schedule}: {row.slot} has the run of another time")
    told = {row.run for row in ledger}
    return faults + [f"run {run.id}: no ledger knows of it" for run in runs if run.id not in told]


def in_time(ledger: Iterable[Fired], *, most: timedelta) -> list[str]:
    """Whatever was fired or skipped was so within that time."""
    return [
        f"schedule {row.schedule}: {row.slot} came {(row.decided_at - row.slot).total_seconds():.1f} s late"
        for row in ledger
        if row.outcome != "missed" and row.decided_at - row.slot > most
    ]
