"""The exit rules, one row each."""

import pytest

from apps.engine.outcomes import decide, signal_name
from apps.engine.types import Observation, Phase


def exited(code: int | None, oom: bool = False) -> Observation:
    return Observation(Phase.EXITED, exit_code=code, oom_killed=oom)


GONE = Observation(Phase.MISSING)


@pytest.mark.parametrize(
    ("observation", "how", "state", "reason", "warning"),
    [
        (exited(0), {}, "succeeded", None, False),
        (exited(0, oom=True), {}, "succeeded", None, True),
        (exited(3), {"ok_codes": (0, 3)}, "succeeded", None, False),
        (exited(1), {}, "failed", "exit_nonzero", False),
        (exited(1, oom=True), {}, "failed", "exit_nonzero", True),
        (exited(3), {}, "failed", "exit_nonzero", False),
        (exited(25), {}, "failed", "exit_nonzero", False),
        (exited(137, oom=True), {}, "failed", "oom", False),
        (exited(137), {}, "failed", "killed", False),
        (exited(137), {"asked": "user", "killed_after_grace": True}, "canceled", "stopped_by_user", False),
        (exited(137), {"asked": "run_timeout"}, "timed_out", "run_timeout", False),
        (exited(143), {}, "failed", "exit_nonzero", False),
        (exited(143), {"asked": "user"}, "canceled", "stopped_by_user", False),
        (exited(0), {"asked": "user"}, "canceled", "stopped_by_user", False),
        (exited(0), {"asked": "idle_timeout"}, "timed_out", "idle_timeout", False),
        (exited(0), {"asked": "start_timeout"}, "timed_out", "start_timeout", False),
        (exited(143), {"asked": "replaced"}, "canceled", "replaced", False),
        (exited(134), {}, "failed", "exit_nonzero", False),
        (exited(139), {}, "failed", "exit_nonzero", False),
        (exited(153), {}, "failed", "output_limit", False),
        (exited(-25), {}, "failed", "output_limit", False),
        (exited(25), {"output_full": True}, "failed", "output_limit", False),
        (exited(0), {"output_full": True}, "failed", "output_limit", False),
        (exited(141), {"output_full": True}, "failed", "output_limit", False),
        (exited(137), {"asked": "storage_error"}, "failed", "storage_error", False),
        (exited(137), {"asked": "a_new_reason"}, "failed", "a_new_reason", False),
        (exited(None), {}, "lost", "container_vanished", False),
        (GONE, {}, "lost", "container_vanished", False),
        (GONE, {"asked": "user"}, "canceled", "stopped_by_user", False),
        (GONE, {"asked": "node_lost"}, "lost", "node_lost", False),
    ],
)
def test_the_end_is_explained(observation, how, state, reason, warning):
    outcome = decide(observation, **how)
    assert (outcome.state, outcome.reason, outcome.memory_warning) == (state, reason, warning)


def test_the_facts_are_kept_for_the_sentence():
    detail = decide(exited(137), asked="user", killed_after_grace=True).detail
    assert detail == {"exit_code": 137, "signal": "SIGKILL", "killed_after_grace": True}


@pytest.mark.parametrize("phase", [Phase.CREATED, Phase.RUNNING, Phase.PAUSED])
def test_an_attempt_that_is_not_over_has_no_outcome(phase):
    with pytest.raises(ValueError, match="no outcome"):
        decide(Observation(phase))


def test_signals_have_names():
    assert [signal_name(code) for code in (None, 0, 1, 134, 139, -9, 255)] == [
        "",
        "",
        "",
        "SIGABRT",
        "SIGSEGV",
        "SIGKILL",
        "",
    ]
