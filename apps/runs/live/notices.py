"""Notices of changed runs for open lists: one subscription a web process, small sets of ids, droppable."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import orjson
import redis

from apps.runs.live import wire
from apps.runs.live.feed import client, goes_on

logger = logging.getLogger(__name__)

RETRY_SECONDS = 2.0
MAX_PENDING = 1000


@dataclass(eq=False)
class Mailbox:
    """Newest state of each run that changed since the list was last told."""

    pending: dict[int, str] = field(default_factory=dict)
    filled: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self) -> dict[int, str]:
        taken, self.pending = self.pending, {}
        self.filled.clear()
        return taken


@dataclass(eq=False)
class _Hub:
    mailboxes: set[Mailbox] = field(default_factory=set)
    task: asyncio.Task[None] | None = None


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, _Hub] = WeakKeyDictionary()


@asynccontextmanager
async def mailbox() -> AsyncIterator[Mailbox]:
    hub = _hubs.setdefault(asyncio.get_running_loop(), _Hub())
    own = Mailbox()
    hub.mailboxes.add(own)
    if hub.task is None or hub.task.done():
        hub.task = asyncio.create_task(_listen(hub))
    try:
        yield own
    finally:
        hub.mailboxes.discard(own)
        if not hub.mailboxes and hub.task is not None:
            hub.task.cancel()


async def _listen(hub: _Hub) -> None:
    while goes_on():
        try:
            async with client().pubsub(ignore_subscribe_messages=True) as subscription:
                await subscription.subscribe(wire.notice_channel())
                while goes_on():
                    message = await subscription.get_message(timeout=1.0)
                    if message is not None:
                        _deliver(hub, message["data"])
        except redis.RedisError as error:
            logger.debug("no notices for now: %s", error)
        await asyncio.sleep(RETRY_SECONDS)


def _deliver(hub: _Hub, data: bytes) -> None:
    notice = orjson.loads(data)
    for box in hub.mailboxes:
        if len(box.pending) < MAX_PENDING:
            box.pending[notice["id"]] = notice["state"]
            box.filled.set()
