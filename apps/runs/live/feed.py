"""The reading side inside a web process: one task for each watched run, however many sockets watch it.

A feed keeps the newest frames (at most about 2 MiB) and says how far the run has come. A socket keeps its own cursor,
takes what the feed still has and reads PostgreSQL for the rest, so nothing is buffered for a slow one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import orjson
import redis
import redis.asyncio
from channels.db import database_sync_to_async
from django.conf import settings

from apps.core import valkey
from apps.runs.live import wire
from apps.runs.selectors import run_status
from apps.runs.states import TERMINAL
from apps.runs.store import Row

logger = logging.getLogger(__name__)

KEPT_BYTES = 2 * 1024 * 1024
BLOCK_MS = 1000
# Hints can be lost: the database has the last word every few seconds, and every second while Valkey is away.
POLL_SECONDS = 5.0
POLL_SECONDS_WITHOUT_HINTS = 1.0


@dataclass(slots=True)
class Entry:
    """Consecutive lines as they came: `body` is the JSON of the rows, parsed only when a part is needed."""

    first: int
    last: int
    body: bytes

    def rows_after(self, line: int) -> list[Row]:
        return [row for row in orjson.loads(self.body) if row[0] > line]


@dataclass(eq=False)
class Feed:
    """What this process knows of one run. Watchers wait on `changed` and compare the revision numbers."""

    run_id: int
    entries: deque[Entry] = field(default_factory=deque)
    kept: int = 0
    last: int = 0
    status: dict[str, Any] = field(default_factory=dict)
    status_revision: int = 0
    partial: str = ""
    partial_revision: int = 0
    # The database said: it is over, and `last` is its last line.
    final: bool = False
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    watchers: set[asyncio.Event] = field(default_factory=set)
    task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        for event in self.watchers:
            event.set()

    def add(self, entry: Entry) -> None:
        if self.entries and entry.first != self.entries[-1].last + 1:
            self.entries.clear()
            self.kept = 0
        self.entries.append(entry)
        self.kept += len(entry.body)
        while self.kept > KEPT_BYTES and len(self.entries) > 1:
            self.kept -= len(self.entries.popleft().body)
        self.last = max(self.last, entry.last)
        self.partial = ""

    def entry_after(self, line: int) -> Entry | None:
        """The kept entry that holds line + 1."""
        if not self.entries or not self.entries[0].first <= line + 1 <= self.entries[-1].last:
            return None
        return next(entry for entry in self.entries if entry.last > line)

    def tell(self, status: dict[str, Any]) -> None:
        if self.status.get("state") in TERMINAL and status.get("state") not in TERMINAL:
            return
        merged = {**self.status, **status}
        if merged != self.status:
            self.status = merged
            self.status_revision += 1

    async def poll(self) -> None:
        """Ask the database how far the run is."""
        found = await database_sync_to_async(run_status, thread_sensitive=False)(self.run_id)
        if found is not None:
            self.last = max(self.last, found.lines)
            self.final = found.terminal
            self.tell(found.payload())
        else:
            self.final = True
        self.ready.set()
        self.wake()


_feeds: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, Feed]] = WeakKeyDictionary()
_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, redis.asyncio.Redis] = WeakKeyDictionary()


def client() -> redis.asyncio.Redis:
    """The event loop's own client; its pool gives each blocking read a connection."""
    loop = asyncio.get_running_loop()
    if loop not in _clients:
        _clients[loop] = valkey.async_client(settings.REDIS_URL, socket_timeout=5, socket_connect_timeout=2, retry=None)
    return _clients[loop]


def goes_on() -> bool:
    """Whether the current task was not told to end: redis-py 8 at times swallows the cancellation of a read."""
    task = asyncio.current_task()
    return task is None or not task.cancelling()


@asynccontextmanager
async def watch(run_id: int) -> AsyncIterator[tuple[Feed, asyncio.Event]]:
    """The run's feed, read from now on, and an event that is set whenever something in it changed."""
    feeds = _feeds.setdefault(asyncio.get_running_loop(), {})
    feed = feeds.get(run_id)
    if feed is None or feed.task is None or feed.task.done():
        feed = feeds[run_id] = Feed(run_id)
        feed.task = asyncio.create_task(_read(feed))
    changed = asyncio.Event()
    feed.watchers.add(changed)
    try:
        await feed.ready.wait()
        yield feed, changed
    finally:
        feed.watchers.discard(changed)
        if not feed.watchers:
            feed.task.cancel()
            if feeds.get(run_id) is feed:
                del feeds[run_id]


async def _read(feed: Feed) -> None:
    """Follow the hints, ask the database now and then, survive the loss of either."""
    lines, states = wire.lines_key(feed.run_id), wire.state_key(feed.run_id)
    seen: dict[bytes | str | memoryview[int], int | bytes | str | memoryview[int]] = {lines: "0", states: "0"}
    polled, hints = float("-inf"), True
    while goes_on():
        try:
            if time.monotonic() - polled > (POLL_SECONDS if hints else POLL_SECONDS_WITHOUT_HINTS):
                await feed.poll()
                polled = time.monotonic()
            answer = await client().xread(seen, block=BLOCK_MS)
            hints = True
        except redis.RedisError:
            hints = False
            await asyncio.sleep(POLL_SECONDS_WITHOUT_HINTS)
            continue
        except Exception:
            # The database may be away as well: viewers wait, nothing is lost.
            logger.exception("the live feed of run %s stumbled", feed.run_id)
            await asyncio.sleep(POLL_SECONDS_WITHOUT_HINTS)
            continue
        over = feed.status.get("state") in TERMINAL
        for key, entries in _by_name(answer):
            seen[key] = entries[-1][0].decode()
            for identity, fields in entries:
                _take(feed, key == lines, identity, fields)
        if answer:
            if not over and feed.status.get("state") in TERMINAL:
                polled = float("-inf")
            feed.wake()


def _by_name(answer: Any) -> list[tuple[str, list[tuple[bytes, dict[bytes, bytes]]]]]:
    """RESP 2 answers with pairs, RESP 3 with a mapping whose values lie one list deeper."""
    if isinstance(answer, dict):
        return [(key.decode(), [entry for group in groups for entry in group]) for key, groups in answer.items()]
    return [(key.decode(), entries) for key, entries in answer]


def _take(feed: Feed, is_lines: bool, identity: bytes, fields: dict[bytes, bytes]) -> None:
    if is_lines:
        last = int(identity.split(b"-")[0])
        if not feed.entries or last > feed.entries[-1].last:
            feed.add(Entry(int(fields[b"first"]), last, fields[b"rows"]))
    elif fields[b"kind"] == b"partial":
        feed.partial = orjson.loads(fields[b"body"])
        feed.partial_revision += 1
    else:
        feed.tell(orjson.loads(fields[b"body"]))
