"""Threads that go on whatever happens: the database may be away, the engine may hang, a bug may raise."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from django.db import Error, connection

logger = logging.getLogger(__name__)

LONGEST_PAUSE = 5.0


class Loop(threading.Thread):
    """Calls `body` until `stop`; it returns the seconds to wait, `wake` cuts the wait short."""

    def __init__(
        self, name: str, body: Callable[[], float], *, stop: threading.Event, wake: threading.Event | None = None
    ) -> None:
        super().__init__(name=f"agent-{name}", daemon=True)
        self._body = body
        self._stop_asked = stop
        self._wake = wake or stop
        self._failures = 0
        self.last_done = time.monotonic()

    def run(self) -> None:
        while not self._stop_asked.is_set():
            pause = self._once()
            if pause > 0:
                self._wake.wait(pause)
            if self._wake is not self._stop_asked:
                self._wake.clear()
        connection.close()

    def _once(self) -> float:
        try:
            pause = float(self._body())
        except Error as error:
            self._failures += 1
            if self._failures == 1:
                logger.warning("%s: the database does not answer, trying again: %s", self.name, error)
            _forget_connection()
            return min(LONGEST_PAUSE, 0.25 * 2.0 ** min(self._failures, 6))
        except Exception:
            self._failures += 1
            if self._failures == 1:
                logger.exception("%s failed and goes on", self.name)
            _forget_connection()
            return LONGEST_PAUSE
        if self._failures:
            logger.info("%s works again", self.name)
        self._failures = 0
        self.last_done = time.monotonic()
        return pause


def _forget_connection() -> None:
    try:
        connection.close()
    except Error as error:
        logger.debug("closing a broken connection: %s", error)
