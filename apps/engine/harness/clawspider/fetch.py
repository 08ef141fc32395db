"""Fetch one request politely: delay per host, time and size limits, retries with backoff, proxies from the environment.

Runs in several threads at once; what they share is locked here.
"""

from __future__ import annotations

import email.utils
import http.client
import logging
import random
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
import zlib
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit, urlunsplit

from clawspider.http import FetchError, Request, Response
from clawspider.robots import Robots
from clawspider.version import VERSION

if TYPE_CHECKING:
    from email.message import Message

    from clawspider.spider import BaseSpider
    from clawspider.stats import Reporter, Stats

logger = logging.getLogger("clawspider.fetch")

RETRY_STATUSES = frozenset((408, 425, 429, 500, 502, 503, 504))
_BUSY_STATUSES = frozenset((429, 503))
_SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "PUT", "DELETE"))
_LONGEST_WAIT = 120.0
_CHUNK = 64 * 1024
_NETWORK_FAULTS = (OSError, http.client.HTTPException, zlib.error)


class Unfit(Exception):
    """The answer cannot be used, and asking again would not help."""


class _Redirects(urllib.request.HTTPRedirectHandler):
    def __init__(self, limit: int) -> None:
        self.max_redirections = limit  # type: ignore[misc]  # a class variable only in the type stubs

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if urlsplit(newurl).scheme not in ("http", "https"):
            raise Unfit(f"redirected to {newurl}, which is not a web address")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class Fetcher:
    def __init__(self, spider: BaseSpider, stats: Stats, reporter: Reporter, stop: threading.Event) -> None:
        self._spider = spider
        self._stats = stats
        self._reporter = reporter
        self._stop = stop
        self._user_agent = spider.user_agent or f"clawspider/{VERSION}"
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler(),
            urllib.request.HTTPSHandler(context=ssl.create_default_context()),
            urllib.request.HTTPCookieProcessor(),
            _Redirects(spider.max_redirects),
        )
        self._opener.addheaders = []
        self._robots = Robots(self._robots_file, self._user_agent)
        self._slots: dict[str, float] = {}
        self._slots_lock = threading.Lock()

    def fetch(self, request: Request) -> Response:
        """The answer with a status below 400 or one the spider accepts; else `FetchError`."""
        if self._spider.respect_robots and not self._robots.allows(request.url):
            self._stats.add("forbidden_by_robots")
            raise FetchError("robots.txt does not allow it", request=request)
        response = self._with_retries(request)
        if response.status >= 400 and response.status not in self._spider.accept_statuses:
            raise FetchError(f"the server answered {response.status}", request=request, response=response)
        return response

    def _with_retries(self, request: Request, *, obey_delay: bool = True) -> Response:
        for attempt in range(self._spider.retries + 1):
            last = attempt == self._spider.retries
            if obey_delay:
                self._wait_for_slot(request)
            response: Response | None = None
            try:
                response = self._once(request)
            except Unfit as error:
                raise FetchError(str(error), request=request) from error
            except _NETWORK_FAULTS as error:
                fault = _sentence(error)
                if last or request.method not in _SAFE_METHODS:
                    raise FetchError(fault, request=request) from error
            else:
                if last or not _worth_retrying(request, response):
                    return response
                fault = f"the server answered {response.status}"
            self._pause(attempt, request, response, fault)
        raise AssertionError  # the last attempt returns or raises

    def _pause(self, attempt: int, request: Request, response: Response | None, fault: str) -> None:
        seconds = _retry_after(response) if response else None
        if seconds is None:
            seconds = self._spider.backoff * 2 ** min(attempt, 10) * random.uniform(0.5, 1.5)  # noqa: S311 - jitter
        seconds = min(seconds, _LONGEST_WAIT)
        self._stats.add("retries")
        logger.info("%s: %s, next try in %.1f s", request, fault, seconds)
        if self._stop.wait(seconds):
            raise FetchError(fault, request=request, response=response)

    def _once(self, request: Request) -> Response:
        started = time.monotonic()
        status, size, fault = None, 0, ""
        try:
            response = self._exchange(request, deadline=started + self._spider.timeout)
            status, size = response.status, len(response.body)
        except (Unfit, *_NETWORK_FAULTS) as error:
            fault = _sentence(error)
            raise
        finally:
            ms = round((time.monotonic() - started) * 1000)
            self._reporter.request(url=request.url, method=request.method, status=status, ms=ms, size=size, error=fault)
        return response

    def _exchange(self, request: Request, *, deadline: float) -> Response:
        # The address is checked to be http or https in `Request` and at each redirect.
        outgoing = urllib.request.Request(  # noqa: S310
            _ascii_address(request.url), data=request.body, headers=self._headers(request), method=request.method
        )
        try:
            answer = self._opener.open(outgoing, timeout=self._spider.timeout)
        except urllib.error.HTTPError as error:
            answer = error
            if 300 <= error.code < 400 and error.code != 304:
                error.close()
                raise Unfit(f"the redirect to {error.headers.get('Location', '')} cannot be followed") from error
        with answer:
            body = self._read(answer, deadline)
            headers: Message = answer.headers
            body = _decompress(body, headers.get("Content-Encoding", ""), self._spider.max_body_bytes)
            status = answer.getcode() or 0
            return Response(request=request, url=answer.geturl(), status=status, headers=headers, body=body)

    def _headers(self, request: Request) -> dict[str, str]:
        headers = {"User-Agent": self._user_agent, "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
        headers.update(self._spider.headers)
        headers.update(request.headers)
        return headers

    def _read(self, answer: Any, deadline: float) -> bytes:
        """The whole body. A server that drips one byte a second does not hold a thread longer than the timeout."""
        limit, size = self._spider.max_body_bytes, 0
        parts: list[bytes] = []
        while True:
            part = answer.read1(_CHUNK) if hasattr(answer, "read1") else answer.read(_CHUNK)
            if not part:
                break
            size += len(part)
            if size > limit:
                raise Unfit(f"the answer is larger than {limit:,} bytes")
            if time.monotonic() > deadline:
                raise TimeoutError(f"the answer took longer than {self._spider.timeout:g} s")
            parts.append(part)
        missing = getattr(answer, "length", None)
        if missing:
            raise http.client.IncompleteRead(b"", missing)
        return b"".join(parts)

    def _wait_for_slot(self, request: Request) -> None:
        delay = self._spider.delay
        if self._spider.respect_robots:
            delay = max(delay, self._robots.delay(request.url))
        with self._slots_lock:
            at = max(time.monotonic(), self._slots.get(request.host, 0))
            self._slots[request.host] = at + delay
        if self._stop.wait(max(0, at - time.monotonic())):
            raise FetchError("the crawl was stopped", request=request)

    def _robots_file(self, address: str) -> tuple[int | None, str]:
        try:
            response = self._with_retries(Request(address), obey_delay=False)
        except FetchError:
            return None, ""
        return response.status, response.text


def _worth_retrying(request: Request, response: Response) -> bool:
    if response.status not in RETRY_STATUSES:
        return False
    return request.method in _SAFE_METHODS or response.status in _BUSY_STATUSES


def _retry_after(response: Response) -> float | None:
    """What the server asks for, in seconds: a number or a date."""
    value = response.headers.get("Retry-After", "").strip()
    if value.isdigit():
        return float(value)
    try:
        at = email.utils.parsedate_to_datetime(value)
    except (TypeError, ValueError, IndexError):
        return None
    return max(0.0, at.timestamp() - time.time())


def _ascii_address(url: str) -> str:
    """The address with everything outside ASCII escaped, as it has to travel."""
    parts = urlsplit(url)
    try:
        host = parts.netloc.encode("idna").decode() if not parts.netloc.isascii() else parts.netloc
    except UnicodeError as error:
        raise Unfit(f"the host name {parts.netloc} is not valid") from error
    path = quote(parts.path, safe="/%:@!$&'()*+,;=~-._")
    query = quote(parts.query, safe="/?%:@!$&'()*+,;=~-._[]")
    return urlunsplit((parts.scheme, host, path, query, ""))


def _decompress(body: bytes, encoding: str, limit: int) -> bytes:
    """The body unpacked; one that unpacks beyond the limit (a bomb) is refused before it fills the memory."""
    encoding = encoding.strip().lower()
    if encoding not in ("gzip", "x-gzip", "deflate") or not body:
        return body
    modes = [zlib.MAX_WBITS | 16] if "gzip" in encoding else [zlib.MAX_WBITS, -zlib.MAX_WBITS]
    for mode in modes:
        unpacker = zlib.decompressobj(mode)
        try:
            unpacked = unpacker.decompress(body, limit + 1)
        except zlib.error:
            if mode == modes[-1]:
                raise
            continue
        if len(unpacked) > limit:
            break
        return unpacked
    raise Unfit(f"the answer is larger than {limit:,} bytes")


def _sentence(error: BaseException) -> str:
    reason = getattr(error, "reason", None) if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, (socket.timeout, TimeoutError)):
        return "no answer in time"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return str(reason) or type(reason).__name__
