"""Looks at what the engine runs: ends, stop requests, time limits, pauses."""

from __future__ import annotations

import logging
import time

from django.db import Error

from apps.engine.errors import EngineError, EngineUnavailable
from apps.engine.types import Handle, Observation, Phase
from apps.runs import services
from apps.runs.agent import freezing
from apps.runs.agent.fence import is_still_ours
from apps.runs.agent.followed import Followed
from apps.runs.agent.starter import mark_running
from apps.runs.agent.station import NOTHING_TO_FOLLOW, Station
from apps.runs.crash import crash_point
from apps.runs.models import Run

logger = logging.getLogger(__name__)

WHILE_STOPPING = 0.25
KILL_AGAIN = 10.0
SHORTEST_LOOK = 0.05


class Observer:
    def __init__(self, station: Station) -> None:
        self.station = station
        self._look_at_all = 0.0

    def tick(self) -> float:
        """All runs now and then; in between those that an event names, or whose moment has come."""
        station = self.station
        hints = station.hints.take()
        if not station.may_act:
            return station.config.observe_every
        began = time.monotonic()
        everything = began >= self._look_at_all or "" in hints
        runs = [followed for followed in station.roster if not followed.is_over]
        for followed in runs:
            # First of all of them: an engine that hangs at one run must not keep the others from their limits.
            self.watch_limits(followed)
        for followed in runs:
            handle = followed.handle
            if handle is None or not (everything or handle.name in hints or _is_pressing(followed)):
                continue
            if not self.look(followed, handle):
                break
        if everything:
            self._look_at_all = began + station.config.observe_every
        return self._pause() if len(station.roster) else NOTHING_TO_FOLLOW

    def _pause(self) -> float:
        now = time.monotonic()
        pause = max(SHORTEST_LOOK, self._look_at_all - now)
        for followed in self.station.roster:
            if followed.is_over:
                continue
            if followed.stop_cause:
                pause = min(pause, WHILE_STOPPING)
            left = followed.clocks.seconds_left(now)
            if left is not None and not followed.stop_cause:
                pause = min(pause, max(SHORTEST_LOOK, left))
        return pause

    def look(self, followed: Followed, handle: Handle) -> bool:
        """False when the engine does not answer: nothing is known then, and nothing is concluded."""
        try:
            seen = self.station.executor.inspect(handle)
            self.station.set_trouble("engine", "")
            if seen.phase in (Phase.EXITED, Phase.MISSING):
                self._over(followed, seen)
                return True
            if followed.stop_cause:
                self._stop(followed, handle)
            elif seen.phase in (Phase.RUNNING, Phase.PAUSED):
                mark_running(self.station, followed, seen)
                freezing.hold(self.station, followed, handle, seen)
        except EngineUnavailable as error:
            self.station.set_trouble("engine", str(error))
            return False
        except EngineError as error:
            logger.warning("%r: %s", followed, error)
            return True
        return True

    def _over(self, followed: Followed, seen: Observation) -> None:
        crash_point("exit-seen")
        try:
            mark_running(self.station, followed, seen)
            freezing.note_resumed(self.station, followed)
        except Error as error:
            # Its end is stored with the last bytes; that it ran is known by then.
            logger.info("%r: %s", followed, error)
            raise
        finally:
            followed.observation = seen
            self.station.data.set()

    def watch_limits(self, followed: Followed) -> None:
        """Decided here and now, also without the database; it is told as soon as it answers."""
        if followed.stop_cause:
            return
        freezing.end_overlong_pause(self.station, followed)
        now = time.monotonic()
        cause = followed.clocks.exceeded(now)
        if not cause and followed.started_at is None and followed.handle is None and self._is_late(followed, now):
            cause = "start_timeout"
        if cause and is_still_ours(self.station, followed):
            self._ask(followed, cause)

    def _is_late(self, followed: Followed, now: float) -> bool:
        if "engine" in self.station.troubles:
            # Not its fault; it is started, or given back, when the engine answers.
            followed.ready_at = now
            return False
        if followed.building:
            return now - followed.claimed > self.station.config.build_seconds
        return now - followed.ready_at > followed.limits.start_seconds

    def _ask(self, followed: Followed, cause: str) -> None:
        followed.stop_cause = cause
        self.station.work.set()
        run = Run.objects.filter(pk=followed.run_id, token=followed.token).first()
        if run is None:
            return
        try:
            services.request_stop(run=run, by=self.station.actor, now=self.station.now(), cause=cause)
        except services.RunFinished:
            logger.info("%r ended by itself", followed)

    def _stop(self, followed: Followed, handle: Handle) -> None:
        """Ask, wait for the grace, then kill; asked again after an adoption, which does no harm."""
        now = time.monotonic()
        if followed.killed_at is not None:
            if now - followed.killed_at >= KILL_AGAIN:
                self._kill(followed, handle)
        elif followed.kill_wanted:
            self._kill(followed, handle)
        elif followed.told_to_end_at is None:
            if not is_still_ours(self.station, followed):
                return
            crash_point("before-terminate")
            self.station.executor.resume(handle)
            self.station.executor.terminate(handle)
            followed.told_to_end_at = now
            crash_point("terminated")
        elif now - followed.told_to_end_at >= followed.limits.grace_seconds:
            self._kill(followed, handle)

    def _kill(self, followed: Followed, handle: Handle) -> None:
        if not is_still_ours(self.station, followed):
            return
        crash_point("before-kill")
        self.station.executor.kill(handle)
        followed.killed_at = time.monotonic()


def _is_pressing(followed: Followed) -> bool:
    """It is ended, or to be frozen or thawed: it does not wait for the next look at all."""
    return bool(followed.stop_cause) or followed.pause_wanted != (followed.paused_at is not None)
