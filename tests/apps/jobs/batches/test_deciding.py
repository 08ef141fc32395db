"""Every outcome vector of four upstream jobs, under every join and every set of conditions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest

from apps.jobs.models import Condition, Join
from apps.jobs.services.batches.deciding import Edge, Turn, decide
from apps.runs.states import ACTIVE, TERMINAL, State

# The classes of states that could make a difference, each by one of them; the first has not settled.
OUTCOMES = ("running", "succeeded", "failed", "timed_out", "lost", "canceled", "skipped")
# An oracle of another make: a table of what each end means to each condition, and counting.
MEANS = {
    "success": "succeeded",
    "failure": "failed timed_out lost",
    "always": "succeeded failed timed_out lost canceled skipped",
}


def expected(join: str, conditions: Sequence[str], states: Sequence[str]) -> Turn:
    marks = [
        "?" if state == "running" else "+" if state in MEANS[condition].split() else "-"
        for condition, state in zip(conditions, states, strict=True)
    ]
    if join == "any":
        marks = [{"+": "-", "-": "+"}.get(mark, mark) for mark in marks]
    # "all" stops at the first minus; "any" is its mirror image, by De Morgan.
    verdict = "-" if "-" in marks else "?" if "?" in marks else "+"
    if join == "any":
        verdict = {"+": "-", "-": "+"}.get(verdict, verdict)
    return {"+": Turn.GO, "-": Turn.SKIP, "?": Turn.WAIT}[verdict]


@pytest.mark.parametrize("join", Join.values)
@pytest.mark.parametrize("first", Condition.values)
def test_every_vector_of_four_parents_decides_the_child(join: str, first: str) -> None:
    wrong = []
    for conditions in product([first], *[Condition.values] * 3):
        for states in product(OUTCOMES, repeat=4):
            edges = [
                Edge(str(n), condition, state)
                for n, (condition, state) in enumerate(zip(conditions, states, strict=True))
            ]
            if decide(join, edges).turn is not expected(join, conditions, states):
                wrong.append((conditions, states))
    assert not wrong, wrong[:5]


@pytest.mark.parametrize("join", Join.values)
@pytest.mark.parametrize("condition", Condition.values)
@pytest.mark.parametrize("state", State.values)
def test_every_state_of_one_parent(join: str, condition: str, state: str) -> None:
    met = state in MEANS[condition].split()

    turn = decide(join, [Edge("1", condition, state)]).turn

    assert turn is (Turn.WAIT if state in ACTIVE else Turn.GO if met else Turn.SKIP)
    assert (state in ACTIVE) is (state not in TERMINAL)


def test_it_says_for_which_edges_it_waits_and_for_which_it_is_skipped() -> None:
    good, bad, open_ = Edge("1", "success", "succeeded"), Edge("2", "success", "failed"), Edge("3", "success", "queued")

    assert decide("all", [good, bad, open_]).because == (bad,)
    assert decide("all", [good, open_]).because == (open_,)
    assert decide("any", [bad, open_]).because == (open_,)
    assert decide("any", [bad, Edge("4", "failure", "canceled")]).because == (bad, Edge("4", "failure", "canceled"))


@pytest.mark.parametrize(
    ("join", "inside", "outside", "turn"),
    [
        ("all", "succeeded", "succeeded", Turn.GO),
        ("all", "succeeded", "failed", Turn.SKIP),
        ("all", "succeeded", None, Turn.SKIP),
        ("all", "failed", "succeeded", Turn.SKIP),
        ("all", "running", "succeeded", Turn.WAIT),
        # Its last run may be another before the batch asks for it.
        ("all", "running", "failed", Turn.WAIT),
        ("any", "succeeded", "failed", Turn.GO),
        ("any", "succeeded", None, Turn.GO),
        # One from elsewhere does not let it overtake the batch.
        ("any", "running", "succeeded", Turn.WAIT),
        ("any", "failed", "succeeded", Turn.GO),
        ("any", "failed", "failed", Turn.SKIP),
        ("any", "failed", None, Turn.SKIP),
    ],
)
def test_a_job_outside_the_batch_counts_by_its_last_run_once_the_batch_has_settled(
    join: str, inside: str, outside: str | None, turn: Turn
) -> None:
    edges = [Edge("1", "success", inside), Edge("2", "success", outside, outside=True)]

    assert decide(join, edges).turn is turn
    assert decide(join, edges[::-1]).turn is turn


@pytest.mark.parametrize(("condition", "turn"), [("success", Turn.SKIP), ("failure", Turn.SKIP), ("always", Turn.GO)])
def test_a_job_outside_that_has_never_run_meets_only_what_is_always_met(condition: str, turn: Turn) -> None:
    edges = [Edge("1", "success", "succeeded"), Edge("2", condition, None, outside=True)]

    assert decide("all", edges).turn is turn
