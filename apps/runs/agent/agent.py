"""The agent: one per worker process, it follows every run of the node."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from django.db import Error, connection
from django.utils import timezone

from apps.engine.errors import EngineError
from apps.engine.types import Executor
from apps.runs import leases
from apps.runs.agent import bell
from apps.runs.agent.care import Caretaker, report_of
from apps.runs.agent.config import AgentConfig
from apps.runs.agent.dispatch import Dispatcher
from apps.runs.agent.followed import Followed
from apps.runs.agent.loops import Loop
from apps.runs.agent.observer import Observer
from apps.runs.agent.pool import DaemonPool
from apps.runs.agent.sampler import Sampler
from apps.runs.agent.station import Station
from apps.runs.agent.tail import Tail

logger = logging.getLogger(__name__)

LEAVE_SECONDS = 4.0
WATCH_AGAIN = 5.0
CLEARERS = 4
EXACT_ENOUGH = timedelta(seconds=2)


def _nothing() -> None:
    return


class Agent:
    """`start` returns once the node is registered; `leave` within seconds, containers go on."""

    def __init__(self, config: AgentConfig, executor: Executor) -> None:
        self.config = config
        health = executor.health()
        report = report_of(config, executor.kind, executor.isolated, health, "It is starting up.", health.warnings)
        node = leases.register(report, now=timezone.now())
        self.station = Station(config, executor, node)
        self.station.set_trouble("start", "It is starting up.")
        self.pool = DaemonPool(config.starters, "agent-start")
        self.clearing = DaemonPool(CLEARERS, "agent-clear")
        self.dispatcher = Dispatcher(self.station, self.pool)
        self.tail = Tail(self.station, self.ended)
        self.observer = Observer(self.station)
        self.caretaker = Caretaker(self.station, health)
        self.sampler = Sampler(self.station)
        self._beat_stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._deafen: Callable[[], None] = _nothing

    def start(self) -> None:
        """Begin to follow; adoption of what lives already is the dispatcher's first work."""
        station = self.station
        stop = station.stop
        self.beat()
        work = [
            Loop("dispatch", self.dispatcher.tick, stop=stop, wake=station.work),
            Loop("tail", self.tail.tick, stop=stop, wake=station.data),
            Loop("observer", self.observer.tick, stop=stop, wake=station.change),
            Loop("sampler", self.sampler.tick, stop=stop, wake=station.fresh),
        ]
        self.caretaker.loops = work
        self._threads = [
            Loop("heartbeat", self.beat, stop=self._beat_stop),
            Loop("care", self.caretaker.tick, stop=stop),
            Loop("watch", self._watch, stop=stop),
            *work,
        ]
        for thread in self._threads:
            thread.start()
        self._deafen = bell.listen(station.work.set)
        logger.info("agent of node %s is there, runs are started by %s", station.node.name, station.executor.kind)

    def beat(self) -> float:
        """Its own thread and connection: nothing slow may stand between a living worker and its leases."""
        before = datetime.now(UTC)
        at = leases.renew(self.station.node.pk, self.config.worker)
        after = datetime.now(UTC)
        self.station.heard_at = time.monotonic()
        if after - before < EXACT_ENOUGH:
            # An answer that took long (a lock, a frozen process) says little about the clocks.
            self.station.skew = at - (before + (after - before) / 2)
        return self.config.heartbeat

    def _watch(self) -> float:
        """A hint sooner than the next look; without it ends are seen all the same."""
        try:
            self.station.executor.watch(self.station.hint, self.station.stop)
        except EngineError as error:
            logger.info("no hints from the engine: %s", error)
            return WATCH_AGAIN
        return 1.0

    def ended(self, followed: Followed) -> None:
        """A place is free: the next run may start while this one is cleared away."""
        self.station.work.set()
        self.clearing.submit(self._clear_away, followed)

    def _clear_away(self, followed: Followed) -> None:
        try:
            self.caretaker.clear_away(followed)
        except Exception:
            logger.exception("%r is cleared away later", followed)
            connection.close()

    def leave(self) -> None:
        """Stop following and let go of the leases; whoever comes next takes over at once."""
        station = self.station
        self._deafen()
        station.stop.set()
        self._beat_stop.set()
        station.wake_all()
        self.pool.shutdown()
        self.clearing.shutdown()
        deadline = time.monotonic() + LEAVE_SECONDS
        for thread in self._threads:
            thread.join(max(0.05, deadline - time.monotonic()))
        try:
            leases.release(station.node.pk, self.config.worker)
        except Error as error:
            logger.warning("leases run out by themselves: %s", error)
