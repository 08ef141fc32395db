"""Every reason against policies and budgets; delays; policies as they may be stored."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.runs.policies import LONGEST_DELAY_SECONDS, Backoff, FailedItems, RetryPolicy
from apps.runs.retries import Cause, Decision, Verdict, cause_of, decide
from apps.runs.states import TERMINAL, State

AGAIN, EXHAUSTED, FINAL = Verdict.AGAIN, Verdict.EXHAUSTED, Verdict.FINAL
THREE = RetryPolicy(attempts=3, infrastructure=2)
ONCE = RetryPolicy(attempts=1, infrastructure=2)
ONLY_OOM = RetryPolicy(attempts=3, causes=("oom",))
ONLY_7 = RetryPolicy(attempts=3, codes=(7, 137))
NEVER_7 = RetryPolicy(attempts=3, never_codes=(7, 137))
NO_MACHINES = RetryPolicy(attempts=3, infrastructure=0)


def verdict(
    policy: RetryPolicy,
    reason: str,
    code: int | None = 1,
    *,
    own: int = 0,
    machines: int = 0,
    state: State = State.FAILED,
    **more: Any,
) -> Decision:
    return decide(
        policy=policy,
        state=state,
        reason=reason,
        exit_code=code,
        own_failures=own,
        infrastructure_failures=machines,
        **more,
    )


TABLE = [
    # policy, reason, exit code, failures before (own, of the infrastructure), verdict
    (THREE, "exit_nonzero", 1, (0, 0), AGAIN),
    (THREE, "exit_nonzero", 1, (1, 0), AGAIN),
    (THREE, "exit_nonzero", 1, (2, 0), EXHAUSTED),
    (THREE, "exit_nonzero", 1, (1, 9), AGAIN),
    (THREE, "killed", 137, (0, 0), AGAIN),
    (THREE, "oom", 137, (0, 0), AGAIN),
    (THREE, "run_timeout", 143, (0, 0), AGAIN),
    (THREE, "idle_timeout", 0, (2, 0), EXHAUSTED),
    (THREE, "node_lost", None, (9, 0), AGAIN),
    (THREE, "node_lost", None, (0, 1), AGAIN),
    (THREE, "node_lost", None, (0, 2), EXHAUSTED),
    (THREE, "node_drained", 143, (0, 0), AGAIN),
    (THREE, "engine_restarted", 143, (0, 0), AGAIN),
    (THREE, "container_vanished", None, (0, 0), AGAIN),
    (THREE, "create_failed", None, (0, 0), AGAIN),
    (THREE, "image_missing", None, (0, 0), AGAIN),
    (THREE, "start_timeout", None, (0, 0), AGAIN),
    (THREE, "worker_lost", None, (0, 0), AGAIN),
    (THREE, "param_error", None, (0, 0), FINAL),
    (THREE, "code_missing", None, (0, 0), FINAL),
    (THREE, "image_build_failed", None, (0, 0), FINAL),
    (THREE, "unplaceable", None, (0, 0), FINAL),
    (THREE, "queue_expired", None, (0, 0), FINAL),
    (THREE, "total_timeout", 143, (0, 0), FINAL),
    (THREE, "output_limit", 153, (0, 0), FINAL),
    (THREE, "item_limit", 143, (0, 0), FINAL),
    (THREE, "storage_error", 0, (0, 0), FINAL),
    (THREE, "a_reason_of_later", 1, (0, 0), FINAL),
    (ONCE, "exit_nonzero", 1, (0, 0), FINAL),
    (ONCE, "node_lost", None, (0, 0), AGAIN),
    (NO_MACHINES, "node_lost", None, (0, 0), FINAL),
    (NO_MACHINES, "exit_nonzero", 1, (0, 0), AGAIN),
    (ONLY_OOM, "oom", 137, (0, 0), AGAIN),
    (ONLY_OOM, "exit_nonzero", 1, (0, 0), FINAL),
    (ONLY_OOM, "killed", 137, (0, 0), FINAL),
    (ONLY_OOM, "run_timeout", 143, (0, 0), FINAL),
    (ONLY_OOM, "node_lost", None, (0, 0), AGAIN),
    (ONLY_7, "exit_nonzero", 7, (0, 0), AGAIN),
    (ONLY_7, "exit_nonzero", 1, (0, 0), FINAL),
    (ONLY_7, "killed", 137, (0, 0), AGAIN),
    (ONLY_7, "killed", None, (0, 0), AGAIN),
    (ONLY_7, "oom", 137, (0, 0), AGAIN),
    (ONLY_7, "run_timeout", 143, (0, 0), AGAIN),
    (NEVER_7, "exit_nonzero", 7, (0, 0), FINAL),
    (NEVER_7, "exit_nonzero", 1, (0, 0), AGAIN),
    (NEVER_7, "killed", 137, (0, 0), FINAL),
    (NEVER_7, "oom", 137, (0, 0), AGAIN),
]


@pytest.mark.parametrize(("policy", "reason", "code", "before", "expected"), TABLE, ids=range(len(TABLE)))
def test_policy_and_budget_decide(
    policy: RetryPolicy, reason: str, code: int | None, before: tuple[int, int], expected: Verdict
) -> None:
    assert verdict(policy, reason, code, own=before[0], machines=before[1]).verdict is expected


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.CANCELED, State.SKIPPED])
@pytest.mark.parametrize("reason", ["", "exit_nonzero", "stopped_by_user", "node_lost"])
def test_what_has_not_failed_is_not_tried_again(state: State, reason: str) -> None:
    assert verdict(THREE, reason, state=state).verdict is FINAL


@pytest.mark.parametrize("stop", ["user", "stopped_by_user", "replaced", "total_timeout"])
@pytest.mark.parametrize("reason", ["exit_nonzero", "node_lost", "run_timeout"])
def test_a_stop_is_final_however_the_attempt_then_ended(stop: str, reason: str) -> None:
    assert verdict(THREE, reason, stop_cause=stop).verdict is FINAL


def test_a_drain_is_no_fault_of_the_spider() -> None:
    decision = verdict(THREE, "node_drained", 143, stop_cause="node_drained")
    assert (decision.verdict, decision.infrastructure, decision.allowed) == (AGAIN, True, 2)


def test_no_attempt_is_promised_that_the_total_limit_would_not_let_start() -> None:
    policy = RetryPolicy(attempts=3, backoff=Backoff.FIXED, delay_seconds=60, jitter=0)
    late = verdict(policy, "exit_nonzero", seconds_left=60.0)
    assert (late.verdict, late.out_of_time) == (EXHAUSTED, True)
    assert verdict(policy, "exit_nonzero", seconds_left=61.0).verdict is AGAIN
    assert not verdict(policy, "exit_nonzero", own=2, seconds_left=1.0).out_of_time


def test_machines_are_given_seconds_whatever_the_policy_says_of_delays() -> None:
    policy = RetryPolicy(attempts=5, infrastructure=100, backoff=Backoff.FIXED, delay_seconds=3600)
    delays = [verdict(policy, "node_lost", machines=n, chance=0.5).delay_seconds for n in (0, 1, 2, 3, 4, 99)]
    assert delays == [5, 10, 20, 40, 60, 60]


@given(
    own=st.integers(0, 200),
    machines=st.integers(0, 200),
    attempts=st.integers(1, 100),
    infrastructure=st.integers(0, 100),
    state=st.sampled_from(TERMINAL),
    reason=st.sampled_from(sorted({row[1] for row in TABLE})),
    code=st.none() | st.integers(0, 255),
    left=st.none() | st.floats(-10, 10_000),
)
def test_no_budget_is_ever_exceeded(
    own: int,
    machines: int,
    attempts: int,
    infrastructure: int,
    state: State,
    reason: str,
    code: int | None,
    left: float | None,
) -> None:
    policy = RetryPolicy(attempts=attempts, infrastructure=infrastructure)
    decision = verdict(policy, reason, code, own=own, machines=machines, state=state, seconds_left=left)
    if decision.verdict is AGAIN:
        assert cause_of(reason) is not Cause.NEVER
        assert decision.failures <= (infrastructure if decision.infrastructure else attempts - 1)
        assert left is None or decision.delay_seconds < left


# -- delays -------------------------------------------------------------------------------------------------------


def test_fixed_exponential_and_listed_delays() -> None:
    fixed = RetryPolicy(backoff=Backoff.FIXED, delay_seconds=30)
    growing = RetryPolicy(backoff=Backoff.EXPONENTIAL, delay_seconds=30, factor=3, cap_seconds=600)
    listed = RetryPolicy(backoff=Backoff.LIST, delays=(30, 300, 5400))
    assert [fixed.delay(n, chance=0.5) for n in (1, 2, 9)] == [30, 30, 30]
    assert [growing.delay(n, chance=0.5) for n in (1, 2, 3, 4, 5)] == [30, 90, 270, 600, 600]
    assert [listed.delay(n, chance=0.5) for n in (1, 2, 3, 4)] == [30, 300, 5400, 5400]


def test_jitter_spreads_around_the_delay_and_never_above_the_cap() -> None:
    policy = RetryPolicy(backoff=Backoff.EXPONENTIAL, delay_seconds=100, factor=2, cap_seconds=200, jitter=0.5)
    assert (policy.delay(1, chance=0.0), policy.delay(1, chance=1.0)) == (50, 150)
    assert (policy.delay(2, chance=0.0), policy.delay(2, chance=1.0)) == (100, 200)


@given(
    failures=st.integers(-5, 10**9),
    factor=st.floats(0, 1e308),
    base=st.integers(0, 10**9),
    cap=st.integers(0, 10**9),
    jitter=st.floats(0, 1),
    backoff=st.sampled_from(Backoff),
    chance=st.none() | st.floats(0, 1, exclude_max=True),
)
def test_no_delay_is_negative_endless_or_an_error(
    failures: int, factor: float, base: int, cap: int, jitter: float, backoff: Backoff, chance: float | None
) -> None:
    policy = RetryPolicy(backoff=backoff, delay_seconds=base, factor=factor, cap_seconds=cap, jitter=jitter)
    assert 0 <= policy.delay(failures, chance=chance) <= LONGEST_DELAY_SECONDS


# -- stored policies ----------------------------------------------------------------------------------------------


def test_a_policy_survives_being_stored() -> None:
    policy = RetryPolicy(
        attempts=4, backoff=Backoff.LIST, delays=(1, 2), causes=("oom",), codes=(3,), items=FailedItems.REPLACE
    )
    assert RetryPolicy.read(policy.as_spec()) == policy


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*RetryPolicy.__dataclass_fields__, "other"]), ODD) | ODD)
def test_reading_an_order_never_fails_and_gives_a_policy_that_can_be_used(stored: Any) -> None:
    policy = RetryPolicy.read(stored)
    assert policy.attempts >= 1
    verdict(policy, "exit_nonzero")
    verdict(policy, "node_lost", None)


def test_one_value_that_makes_no_sense_costs_no_other() -> None:
    policy = RetryPolicy.read({"attempts": 5, "factor": "much", "causes": ["oom", "rain"], "delays": [1, -1]})
    assert policy == RetryPolicy(attempts=5)
