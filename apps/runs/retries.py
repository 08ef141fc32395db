"""Whether a run whose attempt has failed is tried again. A pure decision: it reads nothing and counts nothing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from apps.runs.policies import Backoff, RetryPolicy
from apps.runs.states import State

KILLED_CODE = 137
# A fault of the machines is short or it is long; a person's policy for the target site says nothing about it.
_INFRASTRUCTURE = RetryPolicy(backoff=Backoff.EXPONENTIAL, delay_seconds=5, factor=2.0, cap_seconds=60)


class Cause(StrEnum):
    """Which budget and which words of the policy a failure falls under."""

    EXIT = "exit"
    OOM = "oom"
    TIMEOUT = "timeout"
    INFRASTRUCTURE = "infrastructure"
    NEVER = "never"


# What is not named here would end the same way again (parameters, code, a limit of output), or was wanted (a stop).
_CAUSES = {
    "exit_nonzero": Cause.EXIT,
    "killed": Cause.EXIT,
    "oom": Cause.OOM,
    "run_timeout": Cause.TIMEOUT,
    "idle_timeout": Cause.TIMEOUT,
    "start_timeout": Cause.INFRASTRUCTURE,
    "create_failed": Cause.INFRASTRUCTURE,
    "image_missing": Cause.INFRASTRUCTURE,
    "container_vanished": Cause.INFRASTRUCTURE,
    "engine_restarted": Cause.INFRASTRUCTURE,
    "worker_lost": Cause.INFRASTRUCTURE,
    "node_lost": Cause.INFRASTRUCTURE,
    "node_drained": Cause.INFRASTRUCTURE,
}
# A stop for one of these is final, however the attempt then ended.
FINAL_STOPS = ("user", "stopped_by_user", "replaced", "total_timeout")
FAILURES = (State.FAILED, State.TIMED_OUT, State.LOST)


class Verdict(StrEnum):
    AGAIN = "again"
    EXHAUSTED = "exhausted"  # it would be tried again, but all it may have is used
    FINAL = "final"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """`failures` of this kind so far, this one among them; `allowed` attempts, or failures of the infrastructure."""

    verdict: Verdict
    cause: Cause
    failures: int = 0
    allowed: int = 0
    delay_seconds: float = 0.0
    out_of_time: bool = False

    @property
    def infrastructure(self) -> bool:
        return self.cause is Cause.INFRASTRUCTURE


def cause_of(reason: str) -> Cause:
    return _CAUSES.get(reason, Cause.NEVER)


def decide(
    *,
    policy: RetryPolicy,
    state: State,
    reason: str,
    exit_code: int | None,
    own_failures: int,
    infrastructure_failures: int,
    stop_cause: str = "",
    seconds_left: float | None = None,
    chance: float | None = None,
) -> Decision:
    """The failures are those before this one. `seconds_left`: until the limit over all attempts, if there is one."""
    cause = cause_of(reason) if state in FAILURES else Cause.NEVER
    if cause is Cause.NEVER:
        return Decision(verdict=Verdict.FINAL, cause=cause)
    if cause is Cause.INFRASTRUCTURE:
        failures, allowed = infrastructure_failures + 1, policy.infrastructure
        wanted, spent = allowed > 0, failures > allowed
        delay = _INFRASTRUCTURE.delay(failures, chance=chance)
    else:
        failures, allowed = own_failures + 1, policy.attempts
        wanted, spent = allowed > 1 and _covers(policy, cause, reason, exit_code), failures >= allowed
        delay = policy.delay(failures, chance=chance)
    out_of_time = seconds_left is not None and delay >= seconds_left
    if not wanted or stop_cause in FINAL_STOPS:
        verdict = Verdict.FINAL
    elif spent or out_of_time:
        verdict = Verdict.EXHAUSTED
    else:
        verdict = Verdict.AGAIN
    return Decision(
        verdict=verdict,
        cause=cause,
        failures=failures,
        allowed=allowed,
        delay_seconds=delay,
        out_of_time=out_of_time and not spent,
    )


def _covers(policy: RetryPolicy, cause: Cause, reason: str, exit_code: int | None) -> bool:
    if cause not in policy.causes:
        return False
    if cause is not Cause.EXIT:
        return True
    code = KILLED_CODE if exit_code is None and reason == "killed" else exit_code
    return code not in policy.never_codes and (not policy.codes or code in policy.codes)
