"""Names and limits that the publishing and the reading side share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson
from django.conf import settings

from apps.runs.store import Row

FRAME_BYTES = 64 * 1024
# A late reader finds older lines in PostgreSQL, so the stream may stay short: at most about 2 MiB a run.
STREAM_ENTRIES = 32
STATE_ENTRIES = 8
EXPIRE_SECONDS = 600
PARTIAL_CHARS = 4000


def lines_key(run_id: int) -> str:
    return f"live:{settings.CLAWPANEL_INSTALL}:{run_id}"


def state_key(run_id: int) -> str:
    return f"live:{settings.CLAWPANEL_INSTALL}:{run_id}:state"


def notice_channel() -> str:
    return f"notices:{settings.CLAWPANEL_INSTALL}"


def frames(rows: Sequence[Row]) -> Iterator[tuple[Sequence[Row], bytes]]:
    """The rows cut into groups whose JSON stays near FRAME_BYTES (one longer row is a group of its own)."""
    start, size = 0, 0
    for index, row in enumerate(rows):
        weight = len(row[3]) + 40
        if size and size + weight > FRAME_BYTES:
            yield rows[start:index], orjson.dumps(rows[start:index])
            start, size = index, 0
        size += weight
    if start < len(rows):
        yield rows[start:], orjson.dumps(rows[start:])
