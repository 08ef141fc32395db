"""robots.txt of each host, fetched once. As RFC 9309 has it: no file allows all, a failing server forbids all."""

from __future__ import annotations

import logging
import threading
from typing import Callable, Optional, Tuple
from urllib.parse import urlsplit
from urllib.robotparser import RobotFileParser

logger = logging.getLogger("clawspider.robots")

_LONGEST_DELAY = 30.0
_OK, _CLIENT_ERROR, _SERVER_ERROR = 200, 400, 500

# Fetches an address and answers status (None: not reached) and text.
Fetch = Callable[[str], Tuple[Optional[int], str]]


class Robots:
    def __init__(self, fetch: Fetch, user_agent: str) -> None:
        self._fetch = fetch
        self._user_agent = user_agent
        self._lock = threading.Lock()
        self._hosts: dict[str, _Host] = {}

    def allows(self, url: str) -> bool:
        return self._rules(url).can_fetch(self._user_agent, url)

    def delay(self, url: str) -> float:
        """Seconds between requests that the host asks for, at most 30."""
        asked = self._rules(url).crawl_delay(self._user_agent)
        return min(float(asked or 0), _LONGEST_DELAY)

    def _rules(self, url: str) -> RobotFileParser:
        parts = urlsplit(url)
        address = f"{parts.scheme}://{parts.netloc}/robots.txt"
        with self._lock:
            host = self._hosts.setdefault(address, _Host())
        with host.lock:
            if host.rules is None:
                host.rules = self._load(address)
            return host.rules

    def _load(self, address: str) -> RobotFileParser:
        rules = RobotFileParser(address)
        status, text = self._fetch(address)
        if status == _OK:
            rules.parse(text.splitlines())
        elif status is not None and _CLIENT_ERROR <= status < _SERVER_ERROR:
            rules.parse([])
        else:
            logger.warning("%s cannot be read (%s): nothing of this host is fetched", address, status or "no answer")
            rules.parse(["User-agent: *", "Disallow: /"])
        return rules


class _Host:
    __slots__ = ("lock", "rules")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.rules: RobotFileParser | None = None
