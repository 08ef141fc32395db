"""Cuts off a request whose body is larger than anything the panel takes.

daphne stores a body to its end, on disk, before Django sees the request and can say that it is too large: anybody who
reaches the port could fill the disk without signing in. A little above the limit Django still answers in its own words.
"""

from __future__ import annotations

from typing import Any

from daphne.http_protocol import WebRequest

BODY_BYTES = 16 * 1024 * 1024
REFUSAL = b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def install() -> None:
    store: Any = WebRequest.handleContentChunk
    if hasattr(store, "limited"):
        return

    def handle_content_chunk(self: Any, data: bytes) -> None:
        taken = getattr(self, "body_bytes", 0)
        self.body_bytes = taken + len(data)
        if self.body_bytes <= BODY_BYTES:
            store(self, data)
        elif taken <= BODY_BYTES:
            self.channel.transport.write(REFUSAL)
            self.channel.loseConnection()

    handle_content_chunk.limited = True  # type: ignore[attr-defined]  # a mark for a second call
    WebRequest.handleContentChunk = handle_content_chunk  # type: ignore[method-assign]  # the point of this module
