"""Whose turn it is, decided from what its upstream jobs have come to. Pure: it reads nothing and counts nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from apps.jobs.models import Condition, Join
from apps.runs.states import TERMINAL, State

SUCCESSES = (State.SUCCEEDED,)
# A run that was canceled or skipped is neither a success nor a failure.
FAILURES = (State.FAILED, State.TIMED_OUT, State.LOST)


@dataclass(frozen=True, slots=True)
class Edge:
    """`state` is that of the upstream's run; of one outside the batch None: it has never finished a run."""

    upstream: str
    condition: str
    state: str | None
    outside: bool = False

    @property
    def settled(self) -> bool:
        return self.outside or self.state in TERMINAL

    @property
    def met(self) -> bool:
        if self.condition == Condition.ALWAYS:
            return self.settled
        wanted = SUCCESSES if self.condition == Condition.SUCCESS else FAILURES
        return self.state in wanted


class Turn(Enum):
    WAIT = "wait"
    GO = "go"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Decision:
    """`because` are the edges it waits for, or those for which it is skipped."""

    turn: Turn
    because: tuple[Edge, ...] = ()


def decide(join: str, edges: Iterable[Edge]) -> Decision:
    """Edges from outside the batch are looked at last: they are settled already, and a run that they alone let go would
    overtake the jobs of its batch that it follows."""
    every = tuple(edges)
    inside = tuple(edge for edge in every if not edge.outside)
    outside = tuple(edge for edge in every if edge.outside)
    return _any(inside, outside) if join == Join.ANY else _all(inside, outside)


def _all(inside: tuple[Edge, ...], outside: tuple[Edge, ...]) -> Decision:
    if unmet := tuple(edge for edge in inside if edge.settled and not edge.met):
        return Decision(Turn.SKIP, unmet)
    if pending := tuple(edge for edge in inside if not edge.settled):
        return Decision(Turn.WAIT, pending)
    if unmet := tuple(edge for edge in outside if not edge.met):
        return Decision(Turn.SKIP, unmet)
    return Decision(Turn.GO)


def _any(inside: tuple[Edge, ...], outside: tuple[Edge, ...]) -> Decision:
    if any(edge.met for edge in inside):
        return Decision(Turn.GO)
    if pending := tuple(edge for edge in inside if not edge.settled):
        return Decision(Turn.WAIT, pending)
    if not inside and not outside:
        return Decision(Turn.GO)
    if any(edge.met for edge in outside):
        return Decision(Turn.GO)
    return Decision(Turn.SKIP, inside + outside)
