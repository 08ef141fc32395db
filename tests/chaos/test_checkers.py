"""Each checker accepts a clean history, and finds the one thing that is wrong with another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.jobs.timing import rule_of
from tests.chaos import checkers, limits
from tests.chaos.evidence import (
    AttemptRow,
    ContainerEvent,
    Event,
    Evidence,
    Item,
    Line,
    NodeRow,
    RunRow,
    Window,
)
from tests.chaos.slots import Fired, Made, Timed

START = datetime(2026, 3, 10, 12, tzinfo=UTC)
MIB = 2**20
PARAMETERS = {"count": 4, "per_second": 0, "items_every": 2, "code": 0, "fail_attempts": 0}


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def clean() -> Evidence:
    """Run 1 succeeds at once; run 2 fails in its first attempt, waits, and succeeds in its second."""
    common: dict[str, Any] = {"state": "succeeded", "memory": 100 * MIB, "node": "a", "pools": [1], "job": 1}
    common |= {"job_limit": 2, "spider": 1, "project": 1, "parameters": PARAMETERS, "exit_code": 0}
    second = {**common, "parameters": {**PARAMETERS, "code": 3, "fail_attempts": 1}, "attempts_allowed": 2}
    evidence = Evidence(
        runs={
            1: RunRow(id=1, lines=4, items=2, queued_at=at(0), started_at=at(2), finished_at=at(6), **common),
            2: RunRow(
                id=2, lines=8, items=4, attempt=2, queued_at=at(0), started_at=at(2), finished_at=at(20), **second
            ),
        },
        nodes={"a": NodeRow(name="a", slots=2, memory=250 * MIB, cpus=1.0)},
        pools={1: 2},
        spiders={1: 2},
        projects={1: None},
        most_running=2,
        attempts=[
            AttemptRow(run=1, number=1, claimed_at=at(1), started_at=at(2), finished_at=at(6), exit_code=0),
            AttemptRow(run=2, number=1, claimed_at=at(1), started_at=at(2), finished_at=at(6), exit_code=3),
            AttemptRow(run=2, number=2, claimed_at=at(12), started_at=at(13), finished_at=at(20), exit_code=0),
        ],
        promised={1, 2},
    )
    for run, attempt in ((1, 1), (2, 1), (2, 2)):
        lines, items = 4 * (attempt - 1), 2 * (attempt - 1)
        evidence.lines += [Line(run, lines + n, attempt, f"line {n}") for n in range(1, 5)]
        evidence.items += [Item(run, items + n, attempt, n) for n in range(1, 3)]
        begin, end = (13.0, 20.0) if attempt == 2 else (2.0, 5.9)
        evidence.containers.append(ContainerEvent(at(begin), "start", f"c{run}{attempt}", run, attempt))
        evidence.containers.append(ContainerEvent(at(end), "die", f"c{run}{attempt}", run, attempt))
    node, retry = {"node": "a"}, {"retry_at": at(11).isoformat()}
    history = [
        (0, 1, "", "queued", {}),
        (0, 2, "", "queued", {}),
        (1, 1, "queued", "starting", node),
        (1, 2, "queued", "starting", node),
        (2, 1, "starting", "running", {}),
        (2, 2, "starting", "running", {}),
        (6, 1, "running", "succeeded", {}),
        (6, 2, "running", "retry_wait", retry),
        (11, 2, "retry_wait", "queued", {}),
        (12, 2, "queued", "starting", node),
        (13, 2, "starting", "running", {}),
        (20, 2, "running", "succeeded", {}),
    ]
    evidence.events = [
        Event(id=n, run=run, at=at(seconds), frm=frm, to=to, detail=detail)
        for n, (seconds, run, frm, to, detail) in enumerate(history, 1)
    ]
    # Run 1 is that of the first due time; the second was skipped.
    evidence.schedules = [Timed(1, rule_of(type="interval", every_seconds=10, anchor_at=at(-10)))]
    evidence.made = [Made(1, 1, at(0))]
    evidence.ledger = [
        Fired(1, at(0), "fired", "", 1, at(0.1)),
        Fired(1, at(10), "skipped", "overlap_skip", None, at(10.1)),
    ]
    evidence.since, evidence.until = at(-1), at(19)
    return evidence


def change_run(number: int, **fields: Any) -> Callable[[Evidence], None]:
    def plant(evidence: Evidence) -> None:
        evidence.runs[number] = replace(evidence.runs[number], **fields)

    return plant


def change_event(number: int, **fields: Any) -> Callable[[Evidence], None]:
    def plant(evidence: Evidence) -> None:
        evidence.events[number - 1] = replace(evidence.events[number - 1], **fields)

    return plant


def add_event(**fields: Any) -> Callable[[Evidence], None]:
    def plant(evidence: Evidence) -> None:
        evidence.events.append(Event(id=99, **fields))

    return plant


def drop(what: str, index: int) -> Callable[[Evidence], None]:
    def plant(evidence: Evidence) -> None:
        del getattr(evidence, what)[index]

    return plant


def double(what: str, index: int) -> Callable[[Evidence], None]:
    def plant(evidence: Evidence) -> None:
        rows = getattr(evidence, what)
        rows.insert(index, rows[index])

    return plant


def swap(what: str) -> Callable[[Evidence], None]:
    """The texts of two neighbours change places."""

    def plant(evidence: Evidence) -> None:
        rows = getattr(evidence, what)
        name = "text" if what == "lines" else "n"
        one, two = getattr(rows[0], name), getattr(rows[1], name)
        rows[0], rows[1] = replace(rows[0], **{name: two}), replace(rows[1], **{name: one})

    return plant


def tighten(**fields: Any) -> Callable[[Evidence], None]:
    def plant(evidence: Evidence) -> None:
        for name, value in fields.items():
            setattr(evidence, name, value)

    return plant


def node(**fields: Any) -> Callable[[Evidence], None]:
    def plant(evidence: Evidence) -> None:
        evidence.nodes["a"] = replace(evidence.nodes["a"], **fields)

    return plant


def container(seconds: float, what: str, name: str, run: int, attempt: int = 1) -> Callable[[Evidence], None]:
    def plant(evidence: Evidence) -> None:
        evidence.containers.append(ContainerEvent(at(seconds), what, name, run, attempt))

    return plant


def lose_the_end(evidence: Evidence) -> None:
    """The last attempt has lost its last line and item, and is called a success all the same."""
    del evidence.lines[-1], evidence.items[-1]
    evidence.runs[2] = replace(evidence.runs[2], lines=7, items=3)
    evidence.hurt.add(2)


def keep_run_1_waiting(evidence: Evidence) -> None:
    for number, seconds in ((3, 7), (5, 8), (7, 19)):
        evidence.events[number - 1] = replace(evidence.events[number - 1], at=at(seconds))


def keep_the_retry_waiting(evidence: Evidence) -> None:
    for number, seconds in ((9, 17), (10, 18), (11, 19)):
        evidence.events[number - 1] = replace(evidence.events[number - 1], at=at(seconds))


PLANTED: list[tuple[Callable[[Evidence], Any], Callable[[Evidence], None], str]] = [
    (checkers.terminal_once, change_run(1, state="running"), "never ended"),
    (checkers.terminal_once, drop("events", 6), "its last event says running"),
    (checkers.terminal_once, change_event(7, frm="starting", to="paused"), "comes from starting"),
    (checkers.terminal_once, change_event(8, to="waiting"), "no run may go from running to waiting"),
    (checkers.terminal_once, add_event(run=1, at=at(30), frm="succeeded", to="failed"), "succeeded was not the end"),
    (checkers.terminal_once, add_event(run=1, at=at(30), frm="succeeded", to="succeeded"), "was not the end"),
    (checkers.kept_promises, tighten(promised={1, 2, 3}), "run 3"),
    (checkers.expected_ends, change_run(1, state="failed"), "failed"),
    (checkers.expected_ends, change_run(2, state="canceled"), "canceled"),
    (checkers.expected_ends, change_run(2, attempts_allowed=1), "instead of failed"),
    (checkers.successes_are_earned, lose_the_end, "3 of 4 lines"),
    (checkers.all_lines, drop("lines", 1), "missing [2]"),
    (checkers.all_lines, double("lines", 1), "double [2]"),
    (checkers.all_lines, swap("lines"), "out of order"),
    (checkers.all_lines, drop("lines", -1), "3 of 4 lines"),
    (checkers.all_lines, change_run(1, lines=5), "5 lines are counted"),
    (checkers.all_lines, change_run(1, damaged=True), "damaged"),
    (checkers.all_items, drop("items", 0), "missing [1]"),
    (checkers.all_items, double("items", 1), "double [2]"),
    (checkers.all_items, swap("items"), "out of order"),
    (checkers.all_items, drop("items", -1), "1 of 2 items"),
    (checkers.all_items, change_run(1, items=3), "3 items are counted"),
    (checkers.nothing_left, tighten(leftovers=["claw-x-r1-a1"]), "claw-x-r1-a1"),
    (checkers.one_container, container(4, "start", "other", 1, 2), "2 containers at once"),
    (checkers.one_container, container(8, "start", "again", 1), "started 2x"),
    (checkers.one_container, container(30, "start", "late", 1, 2), "still runs"),
    (checkers.ends_are_proven, container(9, "die", "slow", 1), "over at"),
    (checkers.time_goes_forward, change_run(1, finished_at=at(1)), "run 1"),
    (checkers.time_goes_forward, change_run(1, started_at=at(-7200)), "run 1"),
    (checkers.no_time_is_missed_or_doubled, drop("ledger", 1), "nothing is said of"),
    (checkers.no_time_is_missed_or_doubled, double("ledger", 1), "stands 2 times"),
    (checkers.no_time_is_missed_or_doubled, drop("ledger", 0), "no ledger knows of it"),
    (checkers.no_time_is_missed_or_doubled, double("made", 0), "has 2 runs"),
    (limits.never_exceeded, node(slots=1), "2 runs on the node"),
    (limits.never_exceeded, node(memory=150 * MIB), "bytes on the node"),
    (limits.never_exceeded, change_run(2, cpus=1.5), "2.5 CPUs on the node"),
    (limits.never_exceeded, tighten(pools={1: 1}), "runs in pool 1"),
    (limits.never_exceeded, tighten(spiders={1: 1}), "runs of spider 1"),
    (limits.never_exceeded, tighten(projects={1: 1}), "runs of project 1"),
    (limits.never_exceeded, tighten(most_running=1), "runs in all"),
    (limits.never_exceeded, change_run(2, job_limit=1), "runs of job 1"),
    (limits.nobody_waits_beside_a_free_place, keep_run_1_waiting, "run 1: waited 7.0 s"),
    (limits.nobody_waits_beside_a_free_place, keep_the_retry_waiting, "6.0 s after its retry was due"),
]


@pytest.mark.parametrize("check", checkers.ALL, ids=lambda check: check.__name__)
def test_a_clean_history_is_accepted(check: Callable[[Evidence], Any]) -> None:
    assert list(check(clean())) == []


@pytest.mark.parametrize(("check", "plant", "words"), PLANTED)
def test_a_planted_breach_is_found(
    check: Callable[[Evidence], Any], plant: Callable[[Evidence], None], words: str
) -> None:
    evidence = clean()
    plant(evidence)
    assert any(words in fault for fault in check(evidence)), list(check(evidence))


def test_every_checker_has_a_breach_planted() -> None:
    assert {check for check, _plant, _words in PLANTED} == set(checkers.ALL)


def test_a_killed_attempt_may_lack_what_it_never_wrote() -> None:
    evidence = clean()
    del evidence.lines[3], evidence.items[1]
    evidence.runs[1] = replace(evidence.runs[1], state="canceled", stop_cause="user", lines=3, items=1)
    evidence.attempts[0] = replace(evidence.attempts[0], exit_code=143)
    evidence.events[6] = replace(evidence.events[6], to="canceled")
    assert checkers.breaches(evidence) == []


def test_a_stopped_run_may_have_failed_before_the_stop_reached_it() -> None:
    evidence = clean()
    evidence.runs[2] = replace(evidence.runs[2], state="failed", exit_code=3, stop_cause="user")
    assert checkers.expected_ends(evidence) == []
    evidence.runs[1] = replace(evidence.runs[1], state="failed", exit_code=1, stop_cause="user")
    assert len(checkers.expected_ends(evidence)) == 1


def test_a_line_cut_by_a_full_disk_is_no_double() -> None:
    evidence = clean()
    evidence.lines = [Line(1, n, 1, f"line {n}") for n in range(1, 20)] + [Line(1, 20, 1, "line 2")]
    evidence.runs = {1: replace(evidence.runs[1], state="failed", lines=20, parameters={**PARAMETERS, "count": 30})}
    assert len(checkers.all_lines(evidence)) == 1
    evidence.hurt.add(1)
    assert checkers.all_lines(evidence) == []
    evidence.lines[-1] = replace(evidence.lines[-1], text="line 3")
    assert len(checkers.all_lines(evidence)) == 1


def test_waiting_while_a_fault_is_at_work_is_nobodys_fault() -> None:
    evidence = clean()
    keep_run_1_waiting(evidence)
    evidence.windows = [Window(at(1), at(4), "worker_killed")]
    assert limits.nobody_waits_beside_a_free_place(evidence) == []


def test_waiting_for_a_full_pool_is_nobodys_fault() -> None:
    evidence = clean()
    evidence.pools = {1: 1}
    for number, seconds in ((3, 13), (5, 14), (7, 19)):
        evidence.events[number - 1] = replace(evidence.events[number - 1], at=at(seconds))
    evidence.events[9] = replace(evidence.events[9], at=at(20))
    assert [fault for fault in limits.nobody_waits_beside_a_free_place(evidence) if "run 1:" in fault] == [
        "run 1: waited 7.0 s from 12:00:06, there was room"
    ]
