"""What the threads of an agent share."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.utils import timezone

from apps.core.actors import Actor
from apps.engine.types import Executor
from apps.runs.agent.config import AgentConfig
from apps.runs.agent.followed import Followed
from apps.runs.models import Node

# Who has heard nothing from the database for this long does nothing to a container: it may be somebody else's by now.
ACT_WITHIN = 45.0
# A lease lives for four of these: after less than that nobody can have taken a run.
ASK_AFTER = 5.0
NOTHING_TO_FOLLOW = 20.0  # whoever adds a run wakes those who wait this long


class Roster:
    """The runs this agent follows."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[int, Followed] = {}

    def add(self, followed: Followed) -> None:
        with self._lock:
            self._runs[followed.run_id] = followed

    def drop(self, followed: Followed) -> bool:
        """Only this very one: the run may have come back with a new token. False when it was not there any more."""
        with self._lock:
            there = self._runs.get(followed.run_id) is followed
            if there:
                del self._runs[followed.run_id]
            return there

    def get(self, run_id: int) -> Followed | None:
        return self._runs.get(run_id)

    def __iter__(self) -> Iterator[Followed]:
        with self._lock:
            return iter(tuple(self._runs.values()))

    def __len__(self) -> int:
        return len(self._runs)


class Hints:
    """Names of attempts that may be over, as the engine's events say them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: set[str] = set()

    def add(self, name: str) -> None:
        with self._lock:
            self._names.add(name)

    def take(self) -> set[str]:
        with self._lock:
            names, self._names = self._names, set()
        return names


@dataclass
class Station:
    """One agent's view of its machine. `troubles` holds one sentence for each thing that forbids new starts."""

    config: AgentConfig
    executor: Executor
    node: Node
    roster: Roster = field(default_factory=Roster)
    troubles: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    stop: threading.Event = field(default_factory=threading.Event)
    data: threading.Event = field(default_factory=threading.Event)  # wakes the tail
    work: threading.Event = field(default_factory=threading.Event)  # wakes the dispatcher
    change: threading.Event = field(default_factory=threading.Event)  # wakes the observer
    fresh: threading.Event = field(default_factory=threading.Event)  # wakes the sampler
    # Builds may take minutes and wait for the network; only this many starts work the engine at a time.
    engine_places: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(8))
    skew: timedelta = timedelta(0)
    heard_at: float = field(default_factory=time.monotonic)
    hints: Hints = field(default_factory=Hints)

    @property
    def actor(self) -> Actor:
        return Actor("agent", self.node.name)

    def now(self) -> datetime:
        """The database's time as far as known: one history is not written by two clocks."""
        return timezone.now() + self.skew

    def wake_followers(self) -> None:
        """There is a run to follow, or one has begun."""
        for event in (self.data, self.change, self.fresh):
            event.set()

    def hint(self, name: str) -> None:
        """Some attempt has changed: that of the name, or any when it is empty."""
        self.hints.add(name)
        self.change.set()

    def wake_all(self) -> None:
        self.wake_followers()
        self.work.set()

    @property
    def may_act(self) -> bool:
        return time.monotonic() - self.heard_at < ACT_WITHIN

    @property
    def trouble(self) -> str:
        return " ".join(list(self.troubles.values()))  # other threads add and remove

    def set_trouble(self, what: str, sentence: str) -> None:
        if sentence:
            self.troubles[what] = sentence
        else:
            self.troubles.pop(what, None)
