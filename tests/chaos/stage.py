"""A panel under a storm: its processes and servers within reach, and the clock of who did what to them."""

from __future__ import annotations

import contextlib
import random
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import psycopg
import redis
import requests

from tests.chaos.evidence import Window
from tests.chaos.ledger import Ledger
from tests.panel import Panel

SETTLE_SECONDS = 120.0
# What is seen to answer again needs a moment to have caught up.
CATCH_UP = timedelta(seconds=2)
WORDS = {
    "worker": ("celery", "worker --pool"),
    "beat": ("celery", "beat --loglevel"),
    "web": ("daphne", "clawpanel.asgi"),
    "valkey": ("valkey-server",),
}


class DoesNotRecover(AssertionError):
    """The panel did not answer again after a fault had ended."""


@dataclass
class Stage:
    panel: Panel
    ledger: Ledger
    chance: random.Random
    clock: Path
    longest: float = 6.0
    windows: list[Window] = field(default_factory=list)
    hurt: set[int] = field(default_factory=set)
    killed_at: list[tuple[str, datetime]] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    _supervisor: threading.RLock = field(default_factory=threading.RLock)

    def database(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.panel.environment["DATABASE_URL"], autocommit=True, connect_timeout=5)

    def now(self) -> datetime:
        """By the clock that schedules are fired by."""
        with self.database() as connection:
            row = connection.execute("SELECT clock_timestamp()").fetchone()
        assert row is not None
        assert isinstance(row[0], datetime)
        return row[0]

    def broker(self) -> redis.Redis:
        return redis.Redis.from_url(self.panel.environment["REDIS_URL"], socket_timeout=5)

    def process(self, name: str, seconds: float = 40) -> psutil.Process:
        """The living one; a dead one is started again by the supervisor, later each time."""
        deadline = time.monotonic() + seconds
        while True:
            with contextlib.suppress(RuntimeError, psutil.Error):
                return self.panel.process_with(*WORDS[name])
            if time.monotonic() > deadline:
                raise DoesNotRecover(f"there is no {name}")
            time.sleep(0.1)

    def postmaster(self) -> int:
        return int((self.panel.home / "postgres" / "postmaster.pid").read_text().split("\n", 1)[0])

    @contextlib.contextmanager
    def supervisor_looks_away(self) -> Iterator[None]:
        """What dies now stays dead until the end of the block."""
        with self._supervisor:
            self.panel.process.send_signal(signal.SIGSTOP)
            try:
                yield
            finally:
                self.panel.process.send_signal(signal.SIGCONT)

    def pause(self, least: float = 1.0, most: float | None = None) -> None:
        time.sleep(self.chance.uniform(least, most or self.longest))

    @contextlib.contextmanager
    def fault(self, name: str) -> Iterator[None]:
        """Remembers when the panel was disturbed: from now until everything answers again."""
        start = datetime.now(UTC)
        try:
            yield
        finally:
            self.settle()
            self.windows.append(Window(start, datetime.now(UTC) + CATCH_UP, name))

    def settle(self, seconds: float = SETTLE_SECONDS) -> None:
        """Wait until web answers and the node is heard of and willing."""
        deadline = time.monotonic() + seconds
        since = datetime.now(UTC)
        trouble = "not looked yet"
        while trouble:
            trouble = self._trouble(since)
            if time.monotonic() > deadline:
                tail = (self.panel.home / "up.log").read_text(errors="replace")[-6000:]
                raise DoesNotRecover(f"{trouble} {seconds:g} s after the fault\n{tail}")
            time.sleep(0.2)

    def _trouble(self, since: datetime) -> str:
        try:
            if not requests.get(f"{self.panel.url}/readyz", timeout=5).ok:
                return "web is not ready"
            with self.database() as connection:
                rows = connection.execute("SELECT trouble, heartbeat_at > %s FROM runs_node", [since]).fetchall()
        except (requests.RequestException, psycopg.Error) as error:
            return str(error)
        unheard = [str(trouble) or "a node has not been heard of" for trouble, heard in rows if trouble or not heard]
        return " ".join(unheard)
