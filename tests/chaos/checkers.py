"""The promises, asked of what a storm left behind. Each returns one sentence a breach; test_checkers.py plants them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from apps.runs.states import MOVES, TERMINAL, State
from tests.chaos import limits, slots
from tests.chaos.evidence import NUMBERED, AttemptRow, Evidence, RunRow

# The clocks of engine and database are one here, but an end is told with the time of the look that found it.
PROOF = timedelta(seconds=1)
# Ends that an attempt reaches by itself: then it has written all it had to write.
SIGNALS_FROM = 128


def terminal_once(evidence: Evidence) -> list[str]:
    """Every run is over, exactly once, by legal moves alone, and nothing happened to it afterwards."""
    faults = []
    history = defaultdict(list)
    for event in evidence.events:
        if event.kind == "state":
            history[event.run].append(event)
    for run in evidence.runs.values():
        before = ""
        for event in history[run.id]:
            if event.frm != before:
                faults.append(f"run {run.id}: event {event.id} comes from {event.frm or 'nothing'}, it was {before}")
            if before in TERMINAL:
                faults.append(f"run {run.id}: {before} was not the end, {event.to} followed")
            elif before and event.to not in MOVES.get(State(before), ()):
                faults.append(f"run {run.id}: no run may go from {before} to {event.to}")
            before = event.to
        if before != run.state:
            faults.append(f"run {run.id}: it is {run.state}, its last event says {before}")
        if run.state not in TERMINAL:
            faults.append(f"run {run.id}: never ended, it is {run.state} ({run.reason})")
    return faults


def kept_promises(evidence: Evidence) -> list[str]:
    """What the API answered with a 2xx is there."""
    return [f"run {run}: the API had accepted it" for run in sorted(evidence.promised - evidence.runs.keys())]


def successes_are_earned(evidence: Evidence) -> list[str]:
    """Who is called a success has all its lines and items, whatever befell it."""
    faults = []
    last = {run.id: run.attempt for run in evidence.runs.values()}
    lines = Counter(
        line.run for line in evidence.lines if line.attempt == last[line.run] and NUMBERED.fullmatch(line.text)
    )
    items = Counter(item.run for item in evidence.items if item.attempt == last[item.run])
    for run in evidence.runs.values():
        if run.state != State.SUCCEEDED or "count" not in run.parameters:
            continue
        count, every = int(run.parameters["count"]), int(run.parameters.get("items_every", 0))
        if (lines[run.id], items[run.id]) != (count, count // every if every else 0):
            faults.append(f"run {run.id}: succeeded with {lines[run.id]} of {count} lines and {items[run.id]} items")
    return faults


def expected_ends(evidence: Evidence) -> list[str]:
    """A run ends as its program and its people say, whatever was killed meanwhile."""
    faults = []
    for run in evidence.runs.values():
        if "code" not in run.parameters or run.state == State.SKIPPED:
            continue
        allowed = {_natural_end(run)}
        if run.stop_cause or any(e.run == run.id and e.to == State.CANCELED for e in evidence.events):
            allowed.add(State.CANCELED)
            if run.parameters["code"]:
                # It failed before the stop reached it, and is not tried again for a stop is final.
                allowed.add(State.FAILED)
        if run.id in evidence.hurt:
            allowed |= {State.FAILED, State.LOST}
        if run.state not in allowed:
            words = " or ".join(sorted(allowed))
            faults.append(f"run {run.id}: {run.state} ({run.reason}, exit code {run.exit_code}) instead of {words}")
    return faults


def _natural_end(run: RunRow) -> State:
    failing = int(run.parameters.get("fail_attempts", 0))
    if run.parameters["code"] == 0 or 0 < failing < run.attempts_allowed:
        return State.SUCCEEDED
    return State.FAILED


def all_lines(evidence: Evidence) -> list[str]:
    """Numbered lines: all there, once, in order, for each attempt; a hole is only what a killed one never wrote."""
    faults = []
    by_run = defaultdict(list)
    for line in evidence.lines:
        by_run[line.run].append(line)
    for run in evidence.runs.values():
        lines = by_run[run.id]
        if [line.number for line in lines] != list(range(1, run.lines + 1)):
            faults.append(f"run {run.id}: {run.lines} lines are counted, the stored ones are numbered otherwise")
        if run.damaged:
            faults.append(f"run {run.id}: its log is marked as damaged")
        printed = defaultdict(list)
        for line in lines:
            if match := NUMBERED.fullmatch(line.text):
                printed[line.attempt].append(int(match[1]))
        if run.id in evidence.hurt:
            _drop_cut_lines(printed)
        faults += _complete(evidence, run, printed, "line", int(run.parameters.get("count", 0)))
    return faults


def _drop_cut_lines(printed: dict[int, list[int]]) -> None:
    """Where a disk was full, the last line may be the head of one: "line 42" of "line 420"."""
    for numbers in printed.values():
        if len(numbers) > 1 and numbers[-1] < numbers[-2] and str(numbers[-2] + 1).startswith(str(numbers[-1])):
            numbers.pop()


def all_items(evidence: Evidence) -> list[str]:
    """Numbered items, as for lines; and the run's counter says how many count."""
    faults = []
    by_run = defaultdict(list)
    for item in evidence.items:
        by_run[item.run].append(item)
    for run in evidence.runs.values():
        if "count" not in run.parameters:
            continue
        items = by_run[run.id]
        if [item.seq for item in items] != list(range(1, len(items) + 1)):
            faults.append(f"run {run.id}: its items are not numbered from 1 to {len(items)}")
        if len(items) not in (run.items, run.items + run.discarded):
            faults.append(f"run {run.id}: {run.items} items are counted, {len(items)} are stored")
        written = defaultdict(list)
        for item in items:
            written[item.attempt].append(item.n)
        every = int(run.parameters.get("items_every", 0))
        faults += _complete(evidence, run, written, "item", int(run.parameters["count"]) // every if every else 0)
    return faults


def _complete(evidence: Evidence, run: RunRow, found: dict[int, list[int]], what: str, count: int) -> list[str]:
    faults = []
    for attempt in (row for row in evidence.attempts if row.run == run.id):
        numbers = found.get(attempt.number, [])
        if numbers != list(range(1, len(numbers) + 1)):
            missing = sorted(set(range(1, max(numbers, default=0) + 1)) - set(numbers))
            double = [number for number, times in Counter(numbers).items() if times > 1]
            faults.append(
                f"run {run.id} attempt {attempt.number}: {what}s missing {missing[:5]}, double {double[:5]}"
                if missing or double
                else f"run {run.id} attempt {attempt.number}: {what}s are out of order"
            )
        elif run.id not in evidence.hurt and _ended_by_itself(run, attempt) and len(numbers) != count:
            faults.append(f"run {run.id} attempt {attempt.number}: {len(numbers)} of {count} {what}s")
    return faults


def _ended_by_itself(run: RunRow, attempt: AttemptRow) -> bool:
    code = attempt.exit_code
    stopped = bool(run.stop_cause) and attempt.number == run.attempt
    return "count" in run.parameters and code is not None and code < SIGNALS_FROM and not stopped


def nothing_left(evidence: Evidence) -> list[str]:
    """No container, folder or secret of a run that is over."""
    return [f"left over: {what}" for what in evidence.leftovers]


def one_container(evidence: Evidence) -> list[str]:
    """Never two running containers of one run, and none is started a second time."""
    faults = []
    running: dict[int, set[str]] = defaultdict(set)
    started: Counter[tuple[int, int]] = Counter()
    for event in sorted(evidence.containers, key=lambda event: event.at):
        if event.what == "start":
            running[event.run].add(event.container)
            started[event.run, event.attempt] += 1
            if len(running[event.run]) > 1:
                faults.append(f"run {event.run}: {len(running[event.run])} containers at once at {event.at:%H:%M:%S}")
            if started[event.run, event.attempt] > 1:
                faults.append(f"run {event.run} attempt {event.attempt}: started {started[event.run, event.attempt]}x")
        elif event.what in ("die", "destroy"):
            running[event.run].discard(event.container)
    faults += [f"run {run}: its container still runs" for run, containers in running.items() if containers]
    return faults


def ends_are_proven(evidence: Evidence) -> list[str]:
    """The end of a run is told after its last container was seen gone, not before."""
    ends = {event.run: event.at for event in evidence.events if event.kind == "state" and event.to in TERMINAL}
    return [
        f"run {event.run}: over at {ends[event.run]:%H:%M:%S.%f}, its container died at {event.at:%H:%M:%S.%f}"
        for event in evidence.containers
        if event.what == "die" and event.run in ends and event.at > ends[event.run] + PROOF
    ]


def time_goes_forward(evidence: Evidence) -> list[str]:
    """No duration is negative, by whatever clock it was measured."""
    spans = {f"run {run.id}": (run.queued_at, run.started_at, run.finished_at) for run in evidence.runs.values()}
    for row in evidence.attempts:
        spans[f"run {row.run} attempt {row.number}"] = (row.claimed_at, row.started_at, row.finished_at)
    return [
        f"{who}: asked for {asked}, started {started}, ended {ended}"
        for who, (asked, started, ended) in spans.items()
        if not _ascending(asked, started, ended)
    ]


def _ascending(*instants: datetime | None) -> bool:
    known = [instant for instant in instants if instant is not None]
    return known == sorted(known)


def no_time_is_missed_or_doubled(evidence: Evidence) -> list[str]:
    """Each due time of each schedule stands once in the ledger, and what was fired has its one run."""
    return slots.each_time_once(
        evidence.schedules, evidence.ledger, evidence.made, since=evidence.since, until=evidence.until
    )


ALL: tuple[Callable[[Evidence], Iterable[str]], ...] = (
    terminal_once,
    kept_promises,
    expected_ends,
    successes_are_earned,
    all_lines,
    all_items,
    nothing_left,
    one_container,
    ends_are_proven,
    limits.never_exceeded,
    limits.nobody_waits_beside_a_free_place,
    time_goes_forward,
    no_time_is_missed_or_doubled,
)


def breaches(evidence: Evidence) -> list[str]:
    """Of all promises."""
    return [f"{check.__name__}: {fault}" for check in ALL for fault in check(evidence)]
