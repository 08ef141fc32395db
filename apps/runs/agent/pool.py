"""Threads for work that may hang in the engine. They do not outlive the process: the next worker goes on with it."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from django.db import connection

logger = logging.getLogger(__name__)


class DaemonPool(Executor):
    """The library's own pool makes the process wait at its end for whatever its threads are doing."""

    def __init__(self, size: int, name: str) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._threads = [threading.Thread(target=self._serve, name=f"{name}-{i}", daemon=True) for i in range(size)]
        for thread in self._threads:
            thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """After the shutdown nothing begins any more."""
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:
                logger.exception("work in the background failed")
                future.set_exception(error)

        if self._closed.is_set():
            future.cancel()
        else:
            self._work.put(work)
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = True) -> None:
        """Returns at once: what is being done may go on until the process ends."""
        self._closed.set()
        for _ in self._threads:
            self._work.put(None)

    def _serve(self) -> None:
        while True:
            work = self._work.get()
            if work is None:
                connection.close()
                return
            if not self._closed.is_set():
                work()
