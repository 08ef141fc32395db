"""A run that this agent follows. All that matters of it is in the database; this is what it needs at hand."""

from __future__ import annotations

import threading
import time
from datetime import date, datetime
from pathlib import Path
from typing import Any

from apps.engine.levels import Leveler
from apps.engine.redact import Redactor
from apps.engine.types import MIB, Handle, Limits, Observation
from apps.runs.agent.clocks import Clocks, monotonic_of
from apps.runs.agent.signs import last_sign_of_life
from apps.runs.ingest import Batch, Ending, Position
from apps.runs.models import Attempt, Run
from apps.runs.policies import FailedItems, RetryPolicy
from apps.runs.states import PLACED, State


class SpecBroken(Exception):
    """The frozen order of a run cannot be read; the sentence says what is wrong."""


class Followed:
    """Fields are written by one thread each: `position` and what goes with it by the tail alone."""

    def __init__(self, run: Run, attempt: Attempt, *, adopted: bool) -> None:
        self.run_id: int = run.pk
        self.token = run.token
        self.attempt = run.attempt
        self.run_dir = Path(attempt.run_dir)
        self.month: date = run.month
        self.dataset_id: int = run.job_id or 0
        self.request_id = str(run.request_id)
        self.spec: dict[str, Any] = run.spec if isinstance(run.spec, dict) else {}
        limits = _limits(self.spec)
        self.limits = limits or Limits()
        self.limits_broken = limits is None
        self.ok_codes = _ok_codes(self.spec)
        self.claimed_at: datetime = attempt.claimed_at
        self.started_at: datetime | None = attempt.started_at
        self.paused_at: datetime | None = run.paused_at
        self.paused_seconds = run.paused_seconds if attempt.started_at else 0.0
        self.total_seconds = _total_seconds(self.spec)
        self.claimed = time.monotonic()
        self.stop_cause = run.stop_cause
        self.kill_wanted = run.kill_requested_at is not None
        self.pause_wanted = run.pause_requested_at is not None and attempt.started_at is not None
        self.adopted = adopted  # it may exist on the engine already

        # Written by the tail.
        self.leveler = Leveler()
        self.redactor = Redactor()  # the starter's, before it says so:
        self.secrets_known = False  # until then nothing is read, for an adopted run may be printing its secrets
        self.stats: dict[str, Any] = run.stats or {}
        self.output: dict[str, Any] = run.output or {}
        self.rejected = run.items_rejected
        self.position = position_of(run, attempt)
        # Those of earlier attempts, where the order replaces them: they are numbered but not counted.
        replaces = RetryPolicy.read(self.spec.get("retry")).items is FailedItems.REPLACE
        self.items_hidden = self.position.items - attempt.items if replaces else run.items_discarded
        self.in_doubt = False
        self.unreadable = ""
        self.partial = ""
        self.punched = [0, 0]
        self.behind = 0
        self.output_full = False
        self.told_at = 0.0

        # Written by starters and the observer.
        self.handle: Handle | None = None
        self.environment = ""
        self.observation: Observation | None = None
        self.failure: Ending | None = None
        self.starting = threading.Lock()  # held while the engine creates and starts it
        self.submitted = False
        self.retry_at = 0.0
        self.building = False
        self.ready_at = self.claimed  # from here on the start limit counts
        self.told_to_end_at: float | None = None
        self.killed_at: float | None = None
        self.clocks = Clocks.of(self.limits)
        self.ours_at = self.claimed  # when the database last said that it is ours
        self.given_up = False  # we let go of it ourselves
        self._notes: list[tuple[str, int]] = []

    def __repr__(self) -> str:
        return f"<run {self.run_id} attempt {self.attempt} token {self.token}>"

    def limit_of(self, cause: str) -> int | None:
        """The seconds of the time limit that was reached."""
        limits = self.limits
        return {
            "run_timeout": limits.run_seconds,
            "idle_timeout": limits.idle_seconds,
            "start_timeout": limits.start_seconds,
            "total_timeout": self.total_seconds,
        }.get(cause)

    @property
    def is_over(self) -> bool:
        """Nobody writes to its spools any more."""
        return self.observation is not None or self.failure is not None

    def say(self, text: str, level: int) -> None:
        """Our own line in the run's log, stored with what comes next."""
        clean = text.encode("utf-8", "replace").decode().replace("\0", "␀")
        self._notes += [(line, level) for line in clean.splitlines()]

    @property
    def notes(self) -> list[tuple[str, int]]:
        return self._notes[:]

    def forget_notes(self, count: int) -> None:
        del self._notes[:count]

    def stored(self, batch: Batch) -> None:
        self.position = batch.position
        self.rejected += batch.rejected
        if batch.stats is not None:
            self.stats = batch.stats
        if batch.output is not None:
            self.output = batch.output


def position_of(run: Run, attempt: Attempt) -> Position:
    return Position(
        attempt.out_offset,
        attempt.records_offset,
        attempt.out_cut,
        attempt.records_cut,
        run.lines,
        run.items + run.items_discarded,
    )


def load(run_id: int, token: int, *, adopted: bool, now: datetime) -> Followed | None:
    """None when it is not ours any more. `now` is the database's time."""
    run = Run.objects.filter(pk=run_id, token=token, state__in=PLACED).first()
    if run is None:
        return None
    attempt = Attempt.objects.filter(run_id=run_id, number=run.attempt).first()
    if attempt is None:
        return None
    followed = Followed(run, attempt, adopted=adopted)
    clocks = followed.clocks
    if run.total_deadline_at is not None:
        clocks.total_end = monotonic_of(run.total_deadline_at, now)
    if adopted and attempt.started_at is not None and clocks.idle_seconds is not None:
        clocks.last_sign = monotonic_of(last_sign_of_life(run, attempt, now), now)
    if run.paused_at is not None and run.state == State.PAUSED:
        clocks.pause(monotonic_of(run.paused_at, now))
    return followed


def reload_position(followed: Followed) -> bool:
    """After a transaction of unknown fate: what the database has is true. False when the run is not ours any more."""
    run = Run.objects.filter(pk=followed.run_id, token=followed.token).first()
    attempt = Attempt.objects.filter(run_id=followed.run_id, number=followed.attempt).first()
    if run is None or attempt is None or run.attempt != followed.attempt:
        return False
    followed.position = position_of(run, attempt)
    followed.stats, followed.output, followed.rejected = run.stats, run.output, run.items_rejected
    followed.in_doubt = False
    return run.state in PLACED


def _limits(spec: dict[str, Any]) -> Limits | None:
    """None when the order cannot be read."""
    given = spec.get("limits")
    plain = Limits()
    if not isinstance(given, dict):
        return None
    try:
        return Limits(
            memory_bytes=int(given["memory_mb"]) * MIB,
            cpus=float(given["cpus"]),
            run_seconds=int(given["timeout_seconds"]),
            grace_seconds=int(given["grace_seconds"]),
            idle_seconds=_optional(given, "idle_seconds"),
            start_seconds=_optional(given, "start_seconds") or plain.start_seconds,
            pause_seconds=_optional(given, "pause_seconds") or plain.pause_seconds,
            output_bytes=_optional(given, "output_bytes") or plain.output_bytes,
        )
    except (KeyError, TypeError, ValueError):
        return None


def _optional(given: dict[str, Any], name: str) -> int | None:
    return None if given.get(name) is None else int(given[name])


def _total_seconds(spec: dict[str, Any]) -> int | None:
    """Of all its attempts together; an order that cannot be read fails for other reasons."""
    given = spec.get("limits")
    total = given.get("total_seconds") if isinstance(given, dict) else None
    return total if isinstance(total, int) else None


def _ok_codes(spec: dict[str, Any]) -> tuple[int, ...]:
    """Those of the order, and those that the spider's registry entry counts as a success."""
    codes, known = spec.get("ok_codes", [0]), spec.get("exit_codes")
    plain = [code for code in codes if isinstance(code, int)] if isinstance(codes, list) else [0]
    entries = known.items() if isinstance(known, dict) else ()
    meant = [int(code) for code, entry in entries if isinstance(entry, dict) and entry.get("success") is True]
    return (*plain, *meant)
