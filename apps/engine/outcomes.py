"""How an attempt ended, from what the engine saw and who asked: the exit rules in one place."""

from __future__ import annotations

import signal
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from apps.engine.types import Observation, Phase

SUCCEEDED = "succeeded"
FAILED = "failed"
TIMED_OUT = "timed_out"
CANCELED = "canceled"
LOST = "lost"

_SIGNAL_BASE = 128
_KILLED = _SIGNAL_BASE + signal.SIGKILL
_FILE_TOO_LARGE = _SIGNAL_BASE + signal.SIGXFSZ

# Our own request explains the end whatever the exit code: a spider that ends 0 on SIGTERM was stopped all the same.
_ASKED = {
    "user": (CANCELED, "stopped_by_user"),
    "stopped_by_user": (CANCELED, "stopped_by_user"),
    "replaced": (CANCELED, "replaced"),
    "run_timeout": (TIMED_OUT, "run_timeout"),
    "idle_timeout": (TIMED_OUT, "idle_timeout"),
    "start_timeout": (TIMED_OUT, "start_timeout"),
    "total_timeout": (TIMED_OUT, "total_timeout"),
    "output_limit": (FAILED, "output_limit"),
    "item_limit": (FAILED, "item_limit"),
    "storage_error": (FAILED, "storage_error"),
    "worker_lost": (LOST, "worker_lost"),
    "node_lost": (LOST, "node_lost"),
    "node_drained": (FAILED, "node_drained"),
    "poison": (FAILED, "poison"),
    "engine_restarted": (FAILED, "engine_restarted"),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """`detail` holds the facts for the run's one plain sentence; `memory_warning` marks a child killed for memory."""

    state: str
    reason: str | None
    detail: dict[str, Any] = field(default_factory=dict)
    memory_warning: bool = False


def decide(
    observation: Observation,
    *,
    asked: str | None = None,
    killed_after_grace: bool = False,
    ok_codes: Collection[int] = (0,),
    output_full: bool = False,
) -> Outcome:
    """`asked` is who wanted the end ("user" or a reason code); `output_full` says that a spool is at its size limit.

    Only for an attempt that is over: exited, or proven missing.
    """
    if observation.phase not in (Phase.EXITED, Phase.MISSING):
        raise ValueError(f"An attempt that is {observation.phase} has no outcome yet.")
    detail = _detail(observation, killed_after_grace)
    if asked is not None:
        state, reason = _ASKED.get(asked, (FAILED, asked))
        return Outcome(state, reason, detail, memory_warning=observation.oom_killed)
    if observation.phase is Phase.MISSING:
        return Outcome(LOST, "container_vanished", detail)
    return _by_exit_code(observation, ok_codes, output_full, detail)


def _by_exit_code(
    observation: Observation, ok_codes: Collection[int], output_full: bool, detail: dict[str, Any]
) -> Outcome:
    code = observation.exit_code
    if code is None:
        return Outcome(LOST, "container_vanished", detail)
    if output_full or code in (_FILE_TOO_LARGE, -signal.SIGXFSZ):
        return Outcome(FAILED, "output_limit", detail, memory_warning=observation.oom_killed)
    if code in ok_codes:
        return Outcome(SUCCEEDED, None, detail, memory_warning=observation.oom_killed)
    if observation.engine_restarted:
        return Outcome(FAILED, "engine_restarted", detail)
    if code == _KILLED:
        # 137 alone is not out of memory: anybody may send SIGKILL, and any program may exit 137.
        return Outcome(FAILED, "oom" if observation.oom_killed else "killed", detail)
    return Outcome(FAILED, "exit_nonzero", detail, memory_warning=observation.oom_killed)


def _detail(observation: Observation, killed_after_grace: bool) -> dict[str, Any]:
    detail: dict[str, Any] = {"exit_code": observation.exit_code}
    name = signal_name(observation.exit_code)
    if name:
        detail["signal"] = name
    if observation.oom_killed:
        detail["oom_killed"] = True
    if killed_after_grace:
        detail["killed_after_grace"] = True
    if observation.error:
        detail["error"] = observation.error
    return detail


def signal_name(exit_code: int | None) -> str:
    """ "SIGSEGV" for 139 (and -11); empty for an ordinary code."""
    if exit_code is None:
        return ""
    number = -exit_code if exit_code < 0 else exit_code - _SIGNAL_BASE
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
