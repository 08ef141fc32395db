"""Limits recomputed from the events: was one exceeded, and did a run wait although there was room?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from apps.runs.states import PLACED, State
from tests.chaos.evidence import Event, Evidence, NodeRow, RunRow

SLOTS_PER_CORE = 2
PATIENCE = timedelta(seconds=5)


@dataclass
class Board:
    """Which run stands where, as the events so far have it."""

    evidence: Evidence
    placed: dict[int, str] = field(default_factory=dict)
    queued: set[int] = field(default_factory=set)
    retrying: set[int] = field(default_factory=set)

    def take(self, event: Event) -> None:
        run = event.run
        self.queued.discard(run)
        self.retrying.discard(run)
        if event.to in PLACED:
            self.placed[run] = str(event.detail.get("node") or self.placed.get(run) or "")
            return
        self.placed.pop(run, None)
        if event.to == State.QUEUED:
            self.queued.add(run)
        elif event.to == State.RETRY_WAIT:
            self.retrying.add(run)

    def runs(self) -> list[RunRow]:
        return [self.evidence.runs[run] for run in self.placed if run in self.evidence.runs]

    def on(self, node: str) -> list[RunRow]:
        return [self.evidence.runs[run] for run, where in self.placed.items() if where == node]


def never_exceeded(evidence: Evidence) -> list[str]:
    """In the order of the events' ids: an end that a claim has counted on was written before it."""
    board = Board(evidence)
    faults = []
    for event in evidence.events:
        if event.kind != "state" or event.run not in evidence.runs:
            continue
        board.take(event)
        if event.to == State.STARTING:
            faults += [f"run {event.run} at {event.at:%H:%M:%S.%f}: {what}" for what in _exceeded(board, event.run)]
    return faults


def _exceeded(board: Board, run_id: int) -> Iterator[str]:
    evidence, run = board.evidence, board.evidence.runs[run_id]
    node = evidence.nodes.get(board.placed[run_id])
    if node is not None:
        beside = board.on(node.name)
        yield from _over("runs on the node", len(beside), node.slots)
        yield from _over("bytes on the node", sum(other.memory for other in beside), node.memory)
        yield from _over("CPUs on the node", sum(other.cpus for other in beside), _cpus(node) + 1e-6)
    everywhere = board.runs()
    for pool in run.pools:
        used = sum(pool in other.pools for other in everywhere)
        yield from _over(f"runs in pool {pool}", used, evidence.pools.get(pool))
    retrying = [evidence.runs[other] for other in board.retrying]
    same_job = [other for other in (*everywhere, *retrying) if other.job == run.job]
    yield from _over(f"runs of job {run.job}", len(same_job), run.job_limit)
    same_spider = sum(other.spider == run.spider for other in everywhere)
    yield from _over(f"runs of spider {run.spider}", same_spider, evidence.spiders.get(run.spider))
    same_project = sum(other.project == run.project for other in everywhere)
    yield from _over(f"runs of project {run.project}", same_project, evidence.projects.get(run.project))
    yield from _over("runs in all", len(everywhere), evidence.most_running)


def _over(what: str, used: float, limit: float | None) -> Iterator[str]:
    if limit is not None and used > limit:
        yield f"{used:g} {what}, {limit:g} are allowed"


def nobody_waits_beside_a_free_place(evidence: Evidence) -> list[str]:
    """A queued run for which there is room starts within 5 s; a retry that is due is queued as quickly."""
    events = [event for event in evidence.events if event.kind == "state" and event.run in evidence.runs]
    events.sort(key=lambda event: (event.at, event.id))
    board = Board(evidence)
    since: dict[int, datetime] = {}
    longest: dict[int, tuple[timedelta, datetime]] = {}
    for number, event in enumerate(events):
        board.take(event)
        until = events[number + 1].at if number + 1 < len(events) else event.at
        room = _with_room(board)
        since = {run: since.get(run, event.at) for run in room}
        for run, begin in since.items():
            waited = longest_quiet(begin, until, evidence)
            if waited > longest.get(run, (PATIENCE, begin))[0]:
                longest[run] = waited, begin
    faults = [
        f"run {run}: waited {waited.total_seconds():.1f} s from {begin:%H:%M:%S}, there was room"
        for run, (waited, begin) in longest.items()
    ]
    return faults + _late_retries(evidence, events)


def longest_quiet(start: datetime, end: datetime, evidence: Evidence) -> timedelta:
    """The longest stretch between the two in which no fault was at work."""
    longest, at = timedelta(0), start
    for window in sorted(evidence.windows, key=lambda window: window.start):
        if window.end <= at or window.start >= end:
            continue
        longest, at = max(longest, window.start - at), max(at, window.end)
    return max(longest, end - at)


def _with_room(board: Board) -> list[int]:
    """Those in the queue that could start now."""
    evidence = board.evidence
    everywhere = board.runs()
    pools = Counter(pool for run in everywhere for pool in run.pools)
    jobs = Counter(run.job for run in (*everywhere, *(evidence.runs[other] for other in board.retrying)))
    spiders = Counter(run.spider for run in everywhere)
    projects = Counter(run.project for run in everywhere)
    if evidence.most_running is not None and len(everywhere) >= evidence.most_running:
        return []
    return [
        run.id
        for run in (evidence.runs[number] for number in board.queued)
        if _below(jobs[run.job], run.job_limit)
        and _below(spiders[run.spider], evidence.spiders.get(run.spider))
        and _below(projects[run.project], evidence.projects.get(run.project))
        and all(_below(pools[pool], evidence.pools.get(pool)) for pool in run.pools)
        and any(_fits(run, node, board.on(node.name)) for node in evidence.nodes.values())
    ]


def _below(used: int, limit: int | None) -> bool:
    return limit is None or used < limit


def _fits(run: RunRow, node: NodeRow, beside: Iterable[RunRow]) -> bool:
    others = list(beside)
    return (
        len(others) < node.slots
        and sum(other.memory for other in others) + run.memory <= node.memory
        and sum(other.cpus for other in others) + run.cpus <= _cpus(node)
    )


def _cpus(node: NodeRow) -> float:
    """Two runs of one CPU share a core; more places set by hand are each good for such a run."""
    return max(node.cpus * SLOTS_PER_CORE, node.slots)


def _late_retries(evidence: Evidence, events: list[Event]) -> list[str]:
    faults = []
    due: dict[int, datetime] = {}
    for event in events:
        at = due.pop(event.run, None)
        if at is not None and event.to == State.QUEUED:
            late = longest_quiet(at, event.at, evidence)
            if late > PATIENCE:
                faults.append(f"run {event.run}: queued again {late.total_seconds():.1f} s after its retry was due")
        if event.to == State.RETRY_WAIT and event.detail.get("retry_at"):
            due[event.run] = datetime.fromisoformat(str(event.detail["retry_at"]))
    return faults
