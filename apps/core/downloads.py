"""Downloads of any length in constant memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import cast

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header

CHUNK_BYTES = 64 * 1024


class Download(StreamingHttpResponse):
    """Streams a synchronous iterator chunk by chunk.

    Under ASGI Django's own class would gather a synchronous iterator into a list first: the whole file in memory.
    """

    def __init__(self, parts: Iterable[bytes], *, filename: str, content_type: str, attachment: bool = True) -> None:
        super().__init__(_in_chunks(parts), content_type=content_type)
        self["Content-Disposition"] = str(content_disposition_header(attachment, filename))
        self["Cache-Control"] = "no-store"

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = cast("Iterator[bytes]", self.streaming_content)
        following = sync_to_async(lambda: next(chunks, None))
        while (chunk := await following()) is not None:
            yield chunk


def _in_chunks(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Small parts joined, so that a file of short lines does not cost one send a line."""
    buffer = bytearray()
    for part in parts:
        buffer += part
        if len(buffer) >= CHUNK_BYTES:
            yield bytes(buffer)
            buffer.clear()
    if buffer:
        yield bytes(buffer)
