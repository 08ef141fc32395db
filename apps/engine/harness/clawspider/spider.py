"""The base class of spiders."""

from __future__ import annotations

import logging
from typing import Any, Iterable, Mapping

from clawspider.http import Response


class BaseSpider:
    """Subclass it, set `name`, write `start_requests` and `parse`. Class attributes say how politely it fetches."""

    name = ""
    version = ""
    description = ""

    concurrency = 4
    delay = 0.1  # seconds between two requests to one host; robots.txt may ask for more
    timeout = 30.0  # seconds for one answer, from the first byte sent to the last received
    retries = 3  # after 429, 5xx and network faults
    backoff = 1.0  # seconds before the first retry; doubles, with jitter; Retry-After goes first
    max_body_bytes = 16 * 1024 * 1024
    max_redirects = 10
    respect_robots = True
    user_agent = ""
    headers: Mapping[str, str] = {}
    accept_statuses: tuple[int, ...] = ()  # answers of 400 and above that `parse` wants to see

    params: dict[str, Any]
    logger: logging.Logger

    def __new__(cls, *_: Any, **__: Any) -> BaseSpider:
        """Give the logger before `__init__` runs, so that it can be used there."""
        spider = super().__new__(cls)
        spider.logger = logging.getLogger(cls.name or cls.__name__)
        spider.params = {}
        return spider

    def __init__(self, params: Mapping[str, Any]) -> None:
        self.params = dict(params)

    def on_start(self) -> None:
        """Called once before the first request."""

    def start_requests(self) -> Iterable[Any]:
        """Yield the first requests; items may be yielded as well."""
        raise NotImplementedError(f"{type(self).__name__} has no start_requests().")

    def parse(self, response: Response) -> Iterable[Any] | None:
        """Yield items (dicts) and further requests."""
        raise NotImplementedError(f"{type(self).__name__} has no parse().")

    def on_close(self, reason: str) -> None:
        """Called once at the end: `finished`, `failed`, `stopped`, `nothing_new` or the spider's own word."""
