"""From what is known of an attempt that is over to the terminal state of its run."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from apps.engine import outcomes
from apps.engine.types import MIB, Observation
from apps.runs.agent.followed import Followed
from apps.runs.ingest import Ending
from apps.runs.models import RunEvent
from apps.runs.states import State

MOST_CHARS = 2000
# Ends that somebody asked for, who said more than the cause.
_ASKED_FOR = ("stopped_by_user", "replaced", "node_drained", "poison")


def ending_of(followed: Followed, now: datetime) -> Ending:
    """Called once its spools are read to their end."""
    if followed.failure is not None:
        return followed.failure
    observation = followed.observation
    if observation is None:
        raise ValueError(f"{followed} is not over.")
    outcome = outcomes.decide(
        observation,
        asked=followed.stop_cause or None,
        # Who asked for the kill knows that it was one.
        killed_after_grace=followed.killed_at is not None and not followed.kill_wanted,
        ok_codes=followed.ok_codes,
        output_full=followed.output_full,
    )
    state, reason = State(outcome.state), outcome.reason or ""
    detail = {**outcome.detail, **_facts(followed, reason)}
    if reason in ("", "exit_nonzero"):
        meaning = _meaning(followed, observation.exit_code)
        if meaning:
            reason, detail = reason or "exit_meaning", {**detail, "meaning": meaning}
    if followed.unreadable and state is State.SUCCEEDED:
        # Success is earned: what was written has to be stored to its end.
        state, reason, detail = State.FAILED, "storage_error", {**detail, "error": followed.unreadable}
    return Ending(
        state=state,
        reason=reason,
        detail=_storable(detail),
        exit_code=observation.exit_code,
        oom_killed=observation.oom_killed,
        memory_warning=outcome.memory_warning,
        finished_at=_finished_at(followed, observation, now),
    )


def _facts(followed: Followed, reason: str) -> dict[str, Any]:
    """What the sentence of the reason needs to be exact."""
    if reason == "oom":
        return {"memory_mb": followed.limits.memory_bytes // MIB}
    limit = followed.limit_of(reason)
    if limit is not None:
        return {"seconds": limit}
    if reason in _ASKED_FOR:
        asked = RunEvent.objects.filter(run_id=followed.run_id, to_state=State.STOPPING).order_by("-pk").first()
        return asked.detail if asked is not None else {}
    return {}


def _meaning(followed: Followed, exit_code: int | None) -> dict[str, str] | None:
    """What the spider's registry entry says of the code, by language."""
    known = followed.spec.get("exit_codes")
    entry = known.get(str(exit_code)) if isinstance(known, dict) else None
    texts = entry.get("meaning") if isinstance(entry, dict) else None
    return texts if isinstance(texts, dict) else None


def _finished_at(followed: Followed, observation: Observation, now: datetime) -> datetime:
    """The engine's word when it is plausible: its clock may be off."""
    ended = observation.finished_at or now
    if followed.started_at is not None and ended < followed.started_at:
        ended = now
    return min(ended, now)


def failure(reason: str, error: str, **detail: Any) -> Ending:
    """An attempt that never started."""
    return Ending(State.FAILED, reason, _storable({"error": error, **detail} if error else detail))


def _storable(detail: dict[str, Any]) -> dict[str, Any]:
    """Engines quote what programs and files say; PostgreSQL takes no NUL, and no page a megabyte."""
    return {
        key: value.encode("utf-8", "replace").decode().replace("\0", "␀")[:MOST_CHARS]
        if isinstance(value, str)
        else value
        for key, value in detail.items()
    }
