"""Follows the spools of all runs of the node and stores what comes, all runs in one transaction."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.db import Error

from apps.engine import spool
from apps.runs import live
from apps.runs.agent.ending import ending_of
from apps.runs.agent.fence import fence_off
from apps.runs.agent.followed import Followed, reload_position
from apps.runs.agent.reading import Step, blind_step, read_step
from apps.runs.agent.station import NOTHING_TO_FOLLOW, Station
from apps.runs.crash import crash_point
from apps.runs.ingest import store_batches

logger = logging.getLogger(__name__)

# Short pauses make a live log lively, long ones make many runs cheap: the pause follows the work there is.
SHORTEST_PAUSE = 0.025
LONGEST_PAUSE = 0.1
PAUSE_PER_WORK = 2.0
FRESH_SECONDS = 3.0
MOST_BYTES = 16 * 1024 * 1024
TELL_EVERY = 0.5
PUNCH_STEP = 8 * 1024 * 1024


class Tail:
    """`ended` is called with each run whose end is stored."""

    def __init__(self, station: Station, ended: Callable[[Followed], None]) -> None:
        self.station = station
        self.ended = ended
        self._turn = 0

    def tick(self) -> float:
        """One step; returns the pause that is right after it."""
        began = time.monotonic()
        self._settle_doubts()
        steps, more = self._read()
        try:
            self._store(steps)
        except Error:
            # Nobody knows whether it was committed: the database will say.
            for followed, _step in steps:
                followed.in_doubt = True
            raise
        if more:
            return 0
        if not len(self.station.roster):
            return NOTHING_TO_FOLLOW
        worked = time.monotonic() - began
        flowing = bool(steps) or any(began - followed.claimed < FRESH_SECONDS for followed in self.station.roster)
        if not flowing:
            return LONGEST_PAUSE
        return min(LONGEST_PAUSE, max(SHORTEST_PAUSE, PAUSE_PER_WORK * worked))

    def _settle_doubts(self) -> None:
        for followed in self.station.roster:
            if followed.in_doubt and not reload_position(followed):
                # Its end may have been stored by the very transaction whose answer was lost: then it is cleared away.
                if followed.is_over:
                    self.station.roster.drop(followed)
                    self.ended(followed)
                else:
                    fence_off(self.station, followed)

    def _read(self) -> tuple[list[tuple[Followed, Step]], bool]:
        runs = list(self.station.roster)
        self._turn += 1
        first = self._turn % len(runs) if runs else 0
        steps: list[tuple[Followed, Step]] = []
        taken, more = 0, False
        for followed in runs[first:] + runs[:first]:
            if taken > MOST_BYTES:
                more = True
                break
            step = self._step(followed)
            batch = step.batch
            self._listen(followed, step)
            # Not `followed.is_over`: it may have ended since the files were read, and have written before that.
            if step.final and not step.more:
                batch.ending = ending_of(followed, self.station.now())
            more = more or step.more
            taken += batch.out_offset + batch.records_offset - batch.base.out_offset - batch.base.records_offset
            if not batch.is_empty:
                steps.append((followed, step))
            elif step.partial != followed.partial:
                followed.partial = step.partial
                live.publish_partial(followed.run_id, step.partial)
        return steps, more

    @staticmethod
    def _listen(followed: Followed, step: Step) -> None:
        """A beginning of a line is a sign of life as well."""
        clocks = followed.clocks
        if step.alive or step.partial != followed.partial:
            clocks.heard(time.monotonic())
        clocks.caught_up = clocks.caught_up or not step.more

    def _step(self, followed: Followed) -> Step:
        """One run whose files cannot be read must not keep the others from being stored."""
        if followed.stop_cause == "poison":
            # What it writes may be what kills us.
            step = blind_step(followed)
            step.batch.damaged = step.final
            return step
        if not followed.secrets_known:
            return blind_step(followed)
        try:
            return read_step(followed)
        except Exception as error:
            if not followed.unreadable:
                logger.exception("%r: its files cannot be read", followed)
            followed.unreadable = str(error) or type(error).__name__
            return blind_step(followed)

    def _store(self, steps: list[tuple[Followed, Step]]) -> None:
        batches = [step.batch for _followed, step in steps]
        if batches:
            crash_point("before-store")
        kept = {id(batch) for batch in store_batches(batches, now=self.station.now(), actor=self.station.actor)}
        if batches:
            crash_point("stored")
        live.publish_many([(batch.run_id, batch.rows) for batch in batches if id(batch) in kept])
        for followed, step in steps:
            if id(step.batch) not in kept:
                fence_off(self.station, followed)
                continue
            followed.stored(step.batch)
            followed.leveler.state = step.level_state
            followed.forget_notes(step.notes)
            self._publish(followed, step)
            if step.batch.ending is not None:
                crash_point("end-stored")
                self.station.roster.drop(followed)
                self.ended(followed)
            else:
                self._punch(followed)

    def _publish(self, followed: Followed, step: Step) -> None:
        if step.partial != followed.partial:
            followed.partial = step.partial
            live.publish_partial(followed.run_id, step.partial)
        now = time.monotonic()
        if step.batch.ending is None and now - followed.told_at >= TELL_EVERY:
            followed.told_at = now
            at = followed.position
            told: dict[str, object] = {"lines": at.lines, "items": at.items - followed.items_hidden}
            if step.batch.progress is not None:
                told["progress"] = step.batch.progress
            live.publish_state(followed.run_id, told)

    def _punch(self, followed: Followed) -> None:
        """Give the disk back what is stored: a run may write for days."""
        ends = followed.position.out_offset, followed.position.records_offset
        for index, name in enumerate((spool.OUT, spool.RECORDS)):
            if ends[index] - followed.punched[index] >= PUNCH_STEP:
                spool.punch(followed.run_dir / name, ends[index])
                followed.punched[index] = ends[index]
