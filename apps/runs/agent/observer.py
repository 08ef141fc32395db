"""Looks at what the engine runs: ends, stop requests, time limits, back-pressure."""

from __future__ import annotations

import logging
import time

from django.db import Error

from apps.engine.errors import EngineError, EngineUnavailable
from apps.engine.types import Handle, Observation, Phase
from apps.runs import services
from apps.runs.agent.followed import Followed
from apps.runs.agent.starter import mark_running
from apps.runs.agent.station import NOTHING_TO_FOLLOW, Station
from apps.runs.models import Run

logger = logging.getLogger(__name__)

WHILE_STOPPING = 0.25
KILL_AGAIN = 10.0


class Observer:
    def __init__(self, station: Station) -> None:
        self.station = station

    def tick(self) -> float:
        if not self.station.may_act:
            return self.station.config.observe_every
        pause = self.station.config.observe_every
        for followed in self.station.roster:
            if followed.is_over:
                continue
            self.watch_limits(followed)
            handle = followed.handle
            if handle is not None and not self.look(followed, handle):
                break
            if followed.stop_cause and not followed.is_over:
                pause = WHILE_STOPPING
            elif followed.deadline is not None:
                pause = min(pause, max(0.05, followed.deadline - time.monotonic()))
        return pause if len(self.station.roster) else NOTHING_TO_FOLLOW

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
                self._throttle(followed, handle, seen)
        except EngineUnavailable as error:
            self.station.set_trouble("engine", str(error))
            return False
        except EngineError as error:
            logger.warning("%r: %s", followed, error)
            return True
        if seen.phase in (Phase.RUNNING, Phase.PAUSED):
            mark_running(self.station, followed, seen)
        return True

    def _over(self, followed: Followed, seen: Observation) -> None:
        try:
            mark_running(self.station, followed, seen)
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
        now = time.monotonic()
        if followed.deadline is not None and now >= followed.deadline:
            self._ask(followed, "run_timeout")
        elif followed.started_at is None and followed.handle is None:
            if followed.building:
                late = now - followed.claimed > self.station.config.build_seconds
            else:
                late = now - followed.ready_at > followed.limits.start_seconds
            if late:
                self._ask(followed, "start_timeout")

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
        if followed.told_to_end_at is None:
            followed.told_to_end_at = now
            self._unfreeze(followed, handle)
            self.station.executor.terminate(handle)
        elif followed.killed_at is None:
            if now - followed.told_to_end_at >= followed.limits.grace_seconds:
                followed.killed_at = now
                self.station.executor.kill(handle)
        elif now - followed.killed_at >= KILL_AGAIN:
            followed.killed_at = now
            self.station.executor.kill(handle)

    def _throttle(self, followed: Followed, handle: Handle, seen: Observation) -> None:
        """What writes faster than can be stored is frozen until we have caught up."""
        if seen.phase is Phase.RUNNING and followed.behind > self.station.config.most_behind:
            followed.throttled = True
            self.station.executor.pause(handle)
            logger.info("%r is held back, %d bytes are not stored yet", followed, followed.behind)
        elif seen.phase is Phase.PAUSED and followed.behind < self.station.config.caught_up:
            self._unfreeze(followed, handle)

    def _unfreeze(self, followed: Followed, handle: Handle) -> None:
        followed.throttled = False
        self.station.executor.resume(handle)
