"""Takes runs from the queue and from workers that are gone, and learns what became of ours."""

from __future__ import annotations

import logging
import time
from concurrent.futures import Executor as Pool

from apps.core.sessions import end_stuck_copies
from apps.engine.types import Observation, Phase
from apps.runs import leases, queue, sweeps
from apps.runs.agent import config, starter
from apps.runs.agent.fence import fence_off
from apps.runs.agent.followed import Followed, load
from apps.runs.agent.station import Station
from apps.runs.crash import crash_point

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 16


class Dispatcher:
    def __init__(self, station: Station, pool: Pool) -> None:
        self.station = station
        self.pool = pool
        self._adopt_at = 0.0

    def tick(self) -> float:
        station = self.station
        now = time.monotonic()
        seen = leases.glance(station.node.pk, station.config.worker)
        self.refresh(seen.ours, now)  # first: what is taken below is not in it yet
        if now >= self._adopt_at:
            self.adopt(seen)
            self._adopt_at = now + station.config.adopt_every
        requeued = sweeps.requeue_due(now=station.now(), limit=MOST_AT_ONCE) if seen.retry_due else 0
        if (seen.waiting or requeued) and not station.trouble:
            self.claim()
        self.submit()
        return station.config.sweep

    def adopt(self, seen: leases.Glance) -> None:
        """Runs of this node whose worker is gone become ours, wherever they stand."""
        station = self.station
        dead = config.dead_workers(seen.others)
        if not dead and not seen.expired:
            return
        adopted = leases.adopt(
            node=station.node,
            worker=station.config.worker,
            dead=dead,
            now=station.now(),
            poison_deaths=station.config.poison_deaths,
        )
        if seen.expired and not adopted:
            end_stuck_copies()  # the locks of a frozen worker may be what keeps them from us
        for run in adopted:
            logger.info("adopted run %s attempt %s", run.run_id, run.attempt)
            crash_point("adopted")
            self.follow(run.run_id, run.token, adopted=True)

    def refresh(self, held: list[leases.Held], asked: float) -> None:
        """What people want of our runs, and lost leases, from the database: hints may have been lost."""
        station = self.station
        ours = {run.run_id: run for run in held}
        for followed in station.roster:
            run = ours.pop(followed.run_id, None)
            if run is None or run.token != followed.token:
                # A run whose end is being stored this moment is not in the list either: the tail drops that one.
                if not followed.is_over:
                    fence_off(station, followed)
            else:
                followed.ours_at = asked
                self._heed(followed, run)
        for run in ours.values():
            # Claimed or adopted by us, but the answer never arrived.
            self.follow(run.run_id, run.token, adopted=True)

    def _heed(self, followed: Followed, run: leases.Held) -> None:
        """Where two ask for the end at once, the database knows who was first."""
        wanted = (run.stop_cause or followed.stop_cause, run.kill, run.pause and not run.stop_cause)
        if wanted != (followed.stop_cause, followed.kill_wanted, followed.pause_wanted):
            followed.stop_cause, followed.kill_wanted, followed.pause_wanted = wanted
            self.station.change.set()

    def claim(self) -> None:
        station = self.station
        claimed = queue.claim(
            node=station.node,
            worker=station.config.worker,
            runs_home=station.config.runs_home,
            now=station.now(),
            limit=MOST_AT_ONCE,
        )
        for run in claimed:
            crash_point("claimed")
            self.follow(run.run_id, run.token, adopted=False)
        if len(claimed) == MOST_AT_ONCE:
            station.work.set()

    def follow(self, run_id: int, token: int, *, adopted: bool) -> None:
        followed = load(run_id, token, adopted=adopted, now=self.station.now())
        if followed is None:
            return
        self.station.roster.add(followed)
        self._submit(followed)
        self.station.wake_followers()

    def submit(self) -> None:
        """Give to the starters what has neither a handle nor an end."""
        now = time.monotonic()
        for followed in self.station.roster:
            if followed.is_over or followed.handle is not None:
                continue
            if followed.stop_cause and not followed.adopted and self._called_off(followed):
                continue
            if not followed.submitted and now >= followed.retry_at:
                self._submit(followed)

    def _submit(self, followed: Followed) -> None:
        followed.submitted = True
        self.pool.submit(starter.start, self.station, followed)

    def _called_off(self, followed: Followed) -> bool:
        """Stopped while it is built: over at once, unless the engine is just creating it."""
        if not followed.starting.acquire(blocking=False):
            return False
        try:
            if followed.handle is None:
                followed.observation = Observation(Phase.MISSING)
                self.station.data.set()
            return followed.handle is None
        finally:
            followed.starting.release()
