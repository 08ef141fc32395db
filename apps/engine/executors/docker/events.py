"""Follows the engine's events. A hint only: a stream that ends, cleanly or not, says nothing about a run."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import Any

import requests
import urllib3
from docker.errors import DockerException

from apps.engine.docker_api import connect
from apps.engine.errors import EngineError
from apps.engine.executors.docker.profile import LABEL_INSTALL
from apps.engine.settings import EngineSettings

logger = logging.getLogger(__name__)

_KINDS = ["die", "destroy"]
_FIRST_DELAY_SECONDS = 0.2
_LONGEST_DELAY_SECONDS = 5.0
_STREAM_ERRORS = (EngineError, requests.RequestException, urllib3.exceptions.HTTPError, DockerException, OSError)


def watch_events(settings: EngineSettings, wake: Callable[[str], None], stop: Event) -> None:
    """Block until `stop`, connecting again whenever the stream ends."""
    follower = _Follower(settings, wake, stop)
    closer = Thread(target=follower.close_at_stop, name="claw-events-closer", daemon=True)
    closer.start()
    delay = _FIRST_DELAY_SECONDS
    while not stop.is_set():
        try:
            if follower.follow():
                delay = _FIRST_DELAY_SECONDS
        except (*_STREAM_ERRORS, ValueError, AttributeError) as error:
            # ValueError and AttributeError come out of the libraries when the stream is closed under them.
            if not stop.is_set():
                logger.info("event stream ended, connecting again: %s", error)
        stop.wait(delay)
        delay = min(delay * 2, _LONGEST_DELAY_SECONDS)
    closer.join(timeout=_LONGEST_DELAY_SECONDS)


class _Follower:
    def __init__(self, settings: EngineSettings, wake: Callable[[str], None], stop: Event) -> None:
        self._settings, self._wake, self._stop = settings, wake, stop
        self._stream: Any = None

    def follow(self) -> bool:
        """Whether some event came. Wakes once at the start: something may have happened while nobody listened."""
        api = connect(self._settings.docker_url, certs=self._settings.docker_certs)
        heard = False
        try:
            filters = {"type": "container", "event": _KINDS, "label": [f"{LABEL_INSTALL}={self._settings.install}"]}
            self._stream = api.events(decode=True, filters=filters)
            self._wake("")
            if self._stop.is_set():
                return heard
            for event in self._stream:
                heard = True
                self._wake(str(event.get("Actor", {}).get("Attributes", {}).get("name", "")))
        finally:
            api.close()
        return heard

    def close_at_stop(self) -> None:
        # Reading an event stream blocks for ever: closing its socket from here is the only way to end it at once.
        self._stop.wait()
        with suppress(*_STREAM_ERRORS, AttributeError, ValueError):
            self._stream.close()
