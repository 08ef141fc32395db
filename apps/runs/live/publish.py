"""The publishing side, called by the agent after its commit. It never raises and never waits for long."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
import redis
from django.conf import settings

from apps.core import valkey
from apps.runs.live import wire
from apps.runs.store import Row

logger = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 0.5
_PAUSE_SECONDS = 2.0


class _Publisher:
    """One client a process. After a failure it stays silent for a while, so that a dead Valkey costs nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._client: redis.Redis | None = None
        self._silent_until = 0.0
        self._down = False

    def run(self, send: Callable[[redis.Redis], object]) -> None:
        if time.monotonic() < self._silent_until:
            return
        try:
            send(self._connected())
        except (redis.RedisError, OSError, orjson.JSONEncodeError) as error:
            self._silent_until = time.monotonic() + _PAUSE_SECONDS
            if not self._down:
                logger.warning("live hints are off, pages read the database instead: %s", error)
            self._down = True
        else:
            if self._down:
                logger.info("live hints are back")
            self._down = False

    def _connected(self) -> redis.Redis:
        with self._lock:
            if self._client is None:
                self._client = valkey.client(
                    settings.REDIS_URL,
                    socket_timeout=_TIMEOUT_SECONDS,
                    socket_connect_timeout=_TIMEOUT_SECONDS,
                    retry=None,
                )
            return self._client


_publisher = _Publisher()


def publish_lines(run_id: int, rows: Sequence[Row]) -> None:
    """Tell viewers of stored lines `(line, at_ms, level, text)`, in order. Call it after the commit."""
    publish_many([(run_id, rows)])


def publish_many(runs: Sequence[tuple[int, Sequence[Row]]]) -> None:
    """The same for many runs in one round trip, which is most of what it costs."""
    told = [(run_id, rows) for run_id, rows in runs if rows]
    if not told:
        return

    def send(client: redis.Redis) -> None:
        pipe = client.pipeline(transaction=False)
        for run_id, rows in told:
            key = wire.lines_key(run_id)
            for group, body in wire.frames(rows):
                # The id is the last line: a second publication of the same lines is refused by the server.
                pipe.xadd(
                    key,
                    {"first": group[0][0], "rows": body},
                    id=f"{group[-1][0]}-0",
                    maxlen=wire.STREAM_ENTRIES,
                    approximate=False,
                )
            pipe.expire(key, wire.EXPIRE_SECONDS)
        pipe.execute(raise_on_error=False)

    _publisher.run(send)


def publish_partial(run_id: int, text: str) -> None:
    """Show the unfinished last line of a run (a prompt, a progress bar); "" takes it away."""
    _tell(run_id, "partial", text[: wire.PARTIAL_CHARS])


def publish_state(run_id: int, payload: Mapping[str, Any]) -> None:
    """Tell viewers of the run's state and counters, for example {"state": "running", "lines": 12, "items": 3}."""
    _tell(run_id, "run", dict(payload))


def notice(run_id: int, state: str) -> None:
    """Tell open run lists that a run changed. May be lost: lists also look by themselves."""
    notices({run_id: state})


def notices(states: Mapping[int, str]) -> None:
    """The same of many, in one round trip."""
    channel = wire.notice_channel()

    def send(client: redis.Redis) -> None:
        pipe = client.pipeline(transaction=False)
        for run_id, state in states.items():
            pipe.publish(channel, orjson.dumps({"id": run_id, "state": str(state)}))
        pipe.execute()

    _publisher.run(send)


def _tell(run_id: int, kind: str, body: object) -> None:
    def send(client: redis.Redis) -> None:
        key = wire.state_key(run_id)
        pipe = client.pipeline(transaction=False)
        pipe.xadd(key, {"kind": kind, "body": orjson.dumps(body)}, maxlen=wire.STATE_ENTRIES, approximate=False)
        pipe.expire(key, wire.EXPIRE_SECONDS)
        pipe.execute()

    _publisher.run(send)
