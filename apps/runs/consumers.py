"""Websockets of the pages: a run's log, and notices of changed runs.

Log frames to the browser: hello, lines, partial, run, end. From it: ack (credit: at most CREDIT_BYTES travel without
one) and from (it saw a gap). See docs/architecture.md.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Coroutine
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import parse_qs

import orjson
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.contrib import auth
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest

from apps.accounts.models import User
from apps.runs.live import wire
from apps.runs.live.feed import Feed, watch
from apps.runs.live.notices import mailbox
from apps.runs.models import Run
from apps.runs.selectors import log_page, visible_runs

logger = logging.getLogger(__name__)
# Not thread-sensitive: all sockets of the process would share one thread, and wait for each other's reads.
in_thread = partial(database_sync_to_async, thread_sensitive=False)

CREDIT_BYTES = 1024 * 1024
CHECK_SECONDS = 15.0
# Who takes nothing for so long is gone; a living browser comes back and goes on from its last line.
STALLED_SECONDS = 120.0
HISTORY_ROWS = 5000
HISTORY_BYTES = 512 * 1024
MAX_LINE = 2**53
NOTICE_PAUSE_SECONDS = 0.3

NOT_SIGNED_IN, RIGHT_LOST, NOT_FOUND, STALLED, BAD_FRAME, BROKEN = 4401, 4403, 4404, 4408, 4400, 1011


def session_user(session_key: str | None) -> User | AnonymousUser:
    """Who the session belongs to right now: nobody after sign-out, expiry, deactivation or a new password."""
    if not session_key:
        return AnonymousUser()
    request = HttpRequest()
    request.session = SessionStore(session_key)
    return auth.get_user(request)


def watched_run(session_key: str | None, run_id: int) -> tuple[bool, Run | None]:
    """Whether the session is signed in, and the run if its user may read the log."""
    user = session_user(session_key)
    if not user.is_authenticated:
        return False, None
    return True, visible_runs(user, "view_log").filter(pk=run_id).only("pk", "month").first()


def visible_ids(session_key: str | None, ids: list[int]) -> set[int] | None:
    """Which of the runs the session's user may see; None when nobody is signed in."""
    user = session_user(session_key)
    if not user.is_authenticated:
        return None
    return set(visible_runs(user, "view").filter(pk__in=ids).values_list("pk", flat=True)) if ids else set()


class _SessionConsumer(AsyncWebsocketConsumer, ABC):
    """Accepts first and closes with a code after: a refused handshake tells a browser nothing."""

    # No name of this kind is configured: the sockets use no channel layer and do not fall with it.
    channel_layer_alias = "none"

    async def connect(self) -> None:
        session = self.scope.get("session")
        self.session_key: str | None = session.session_key if session is not None else None
        self.tasks: list[asyncio.Task[None]] = []
        await self.accept()
        await self.begin()

    @abstractmethod
    async def begin(self) -> None:
        """Find out who asks for what, and send or close."""

    async def disconnect(self, code: int) -> None:
        self._stop()

    async def end(self, code: int) -> None:
        """Close at once: the browser may take its time to answer, and gets nothing meanwhile."""
        self._stop()
        await self.close(code)

    def _stop(self) -> None:
        for task in self.tasks:
            if task is not asyncio.current_task():
                task.cancel()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.create_task(self._supervised(work)))

    async def _supervised(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception:
            logger.exception("a live page was cut off")
            await self.end(BROKEN)

    async def say(self, kind: str, **values: Any) -> None:
        await self.send(text_data=orjson.dumps({"t": kind, **values}, default=_plain).decode())


class LogConsumer(_SessionConsumer):
    """A run's log from a line on: history from PostgreSQL, then live, each line once and in order."""

    async def begin(self) -> None:
        self.run_id = int(self.scope["url_route"]["kwargs"]["run_id"])
        self.cursor = _line(parse_qs(self.scope["query_string"].decode("latin1")).get("after", ["0"])[0])
        self.unacknowledged: deque[tuple[int, int]] = deque()
        self.travelling = 0
        self.acknowledged = asyncio.Event()
        self.changed = asyncio.Event()  # the feed's own once the pump watches it
        signed_in, run = await in_thread(watched_run)(self.session_key, self.run_id)
        if run is None:
            await self.end(NOT_FOUND if signed_in else NOT_SIGNED_IN)
            return
        self.start(self._guard())
        self.start(self._pump(run))

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        try:
            frame = orjson.loads(text_data or b"")
            kind = frame["t"]
            line = _line(frame["line"] if kind == "ack" else frame["after"])
        except (orjson.JSONDecodeError, KeyError, TypeError):
            await self.end(BAD_FRAME)
            return
        if kind == "ack":
            while self.unacknowledged and self.unacknowledged[0][0] <= line:
                self.travelling -= self.unacknowledged.popleft()[1]
        else:
            self.cursor = line
            self.unacknowledged.clear()
            self.travelling = 0
        self.acknowledged.set()
        self.changed.set()

    async def _guard(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            signed_in, run = await in_thread(watched_run)(self.session_key, self.run_id)
            if run is None:
                await self.end(RIGHT_LOST if signed_in else NOT_SIGNED_IN)
                return

    async def _pump(self, run: Run) -> None:
        async with watch(self.run_id) as (feed, changed):
            self.changed = changed
            await self.say("hello", state=feed.status.get("state"), last=feed.last)
            told_status, told_partial, ended = -1, feed.partial_revision - bool(feed.partial), False
            while True:
                changed.clear()
                if feed.status_revision != told_status:
                    told_status = feed.status_revision
                    await self.say("run", **feed.status)
                final = feed.final
                if await self._send_next(feed, run):
                    ended = False
                    continue
                if feed.partial_revision != told_partial:
                    told_partial = feed.partial_revision
                    await self.say("partial", text=feed.partial)
                if final and not ended:
                    ended = True
                    await self.say("end", last=self.cursor)
                await changed.wait()

    async def _send_next(self, feed: Feed, run: Run) -> bool:
        """Send some lines behind the cursor; False when there are none."""
        entry = feed.entry_after(self.cursor)
        if entry is not None and entry.first == self.cursor + 1:
            await self._send_rows(self.cursor, entry.last, entry.body)
            return True
        if entry is not None:
            rows = entry.rows_after(self.cursor)
            await self._send_rows(self.cursor, entry.last, orjson.dumps(rows))
            return True
        if self.cursor >= feed.last:
            return False
        start = self.cursor
        page = await in_thread(log_page)(run, after=start, limit=HISTORY_ROWS, max_bytes=HISTORY_BYTES)
        for group, body in wire.frames(page.rows):
            if not await self._send_rows(start, group[-1][0], body):
                return True
            start = group[-1][0]
        return bool(page.rows)

    async def _send_rows(self, after: int, last: int, body: bytes) -> bool:
        """Send one frame when there is credit for it; False when the browser asked for another place meanwhile."""
        while self.travelling and self.travelling + len(body) > CREDIT_BYTES:
            self.acknowledged.clear()
            try:
                await asyncio.wait_for(self.acknowledged.wait(), STALLED_SECONDS)
            except TimeoutError:
                await self.end(STALLED)
                raise asyncio.CancelledError from None
        if self.cursor != after:
            return False
        self.cursor = last
        self.travelling += len(body)
        self.unacknowledged.append((last, len(body)))
        await self.send(text_data=f'{{"t":"lines","rows":{body.decode()}}}')
        return True


class RunsConsumer(_SessionConsumer):
    """Tells a run list which of the runs its reader may see have changed."""

    async def begin(self) -> None:
        if await in_thread(visible_ids)(self.session_key, []) is None:
            await self.end(NOT_SIGNED_IN)
            return
        self.start(self._guard())
        self.start(self._pump())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Nothing is expected from the browser."""

    async def _guard(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            if await in_thread(visible_ids)(self.session_key, []) is None:
                await self.end(NOT_SIGNED_IN)
                return

    async def _pump(self) -> None:
        async with mailbox() as box:
            while True:
                await box.filled.wait()
                # A short pause gathers a burst into one question to the database.
                await asyncio.sleep(NOTICE_PAUSE_SECONDS)
                news = box.take()
                seen = await in_thread(visible_ids)(self.session_key, list(news))
                for run_id in sorted(seen or ()):
                    await self.say("run", id=run_id, state=news[run_id])


def _line(value: object) -> int:
    try:
        return min(max(int(str(value)), 0), MAX_LINE)
    except ValueError:
        return 0


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(value)
