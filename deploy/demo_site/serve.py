#!/usr/bin/env python3
"""A small site for the sample spiders, so that they work offline: `serve.py --bind HOST:PORT [--bind HOST:PORT …]`.

Standard library only, one process, prices by the day, pages that are slow, fail, or fail first and then work.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import signal
import socket
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, date, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

import pages
from content import HERE, price_rows

HTML, PLAIN = "text/html; charset=utf-8", "text/plain; charset=utf-8"
LONGEST_SLEEP = 300.0
MOST_CONNECTIONS = 256
MOST_FLAKY_KEYS = 1000
ROBOTS = "User-agent: *\nDisallow: /private/\n"

stopping = threading.Event()


class Answer(NamedTuple):
    body: str
    kind: str = HTML
    status: int = 200
    retry_after: str = ""


class Query:
    """Parameters of an address; what makes no sense counts as not given."""

    def __init__(self, text: str) -> None:
        self._values = parse_qs(text)

    def text(self, name: str, default: str = "") -> str:
        return self._values.get(name, [default])[0]

    def number(self, name: str, default: float) -> float:
        try:
            return float(self.text(name) or default)
        except ValueError:
            return default

    def day(self) -> date:
        try:
            return date.fromisoformat(self.text("date"))
        except ValueError:
            return datetime.now(UTC).date()


class Flaky:
    """How often each key has failed so far; the oldest keys are forgotten."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    def fails(self, key: str, times: int) -> bool:
        with self._lock:
            failed = self._failures.pop(key, 0)
            self._failures[key] = min(failed + 1, times)
            while len(self._failures) > MOST_FLAKY_KEYS:
                self._failures.popitem(last=False)
            return failed < times


flaky = Flaky()


def _prices_csv(query: Query) -> Answer:
    rows, text = price_rows(query.day()), io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return Answer(text.getvalue(), "text/csv; charset=utf-8")


def _prices_json(query: Query) -> Answer:
    return Answer(json.dumps(price_rows(query.day()), ensure_ascii=False, indent=1), "application/json")


def _slow(query: Query) -> Answer:
    seconds = min(max(query.number("seconds", 3), 0), LONGEST_SLEEP)
    stopping.wait(seconds)
    return Answer(pages.page("Slow", f"<h1>Here at last</h1><p>After {seconds:g} s.</p>"))


def _fail(query: Query) -> Answer:
    status = int(query.number("status", 500))
    status = status if 200 <= status <= 599 else 500
    body = pages.page("Failing", f"<h1>{status}</h1><p>You asked for it.</p>")
    return Answer(body, status=status, retry_after=query.text("retry_after"))


def _flaky(query: Query) -> Answer:
    times = int(min(max(query.number("times", 2), 0), 100))
    if flaky.fails(query.text("key", "default"), times):
        return Answer(pages.page("Not yet", "<h1>Try again</h1>"), status=503)
    return Answer(pages.page("Flaky", "<h1>It works now</h1>"))


def _page(body: str | None) -> Answer:
    return Answer(body) if body is not None else Answer(pages.not_found(), status=404)


# Each address and what answers it; groups of the pattern come before the query.
ROUTES: tuple[tuple[str, Callable[..., Answer]], ...] = (
    (r"/", lambda query: Answer(pages.home(query.day()))),
    (r"/robots\.txt", lambda _: Answer(ROBOTS, PLAIN)),
    (r"/style\.css", lambda _: Answer((HERE / "style.css").read_text(encoding="utf-8"), "text/css; charset=utf-8")),
    (r"/catalogue/(?:index\.html)?", lambda query: _page(pages.catalogue(1, query.day()))),
    (r"/catalogue/page-(\d{1,6})\.html", lambda number, query: _page(pages.catalogue(int(number), query.day()))),
    (
        r"/catalogue/category/([a-z-]+)/page-(\d{1,6})\.html",
        lambda name, number, query: _page(pages.category(name, int(number), query.day())),
    ),
    (r"/catalogue/[a-z0-9-]+_(\d{1,6})/index\.html", lambda number, query: _page(pages.book(int(number), query.day()))),
    (
        r"/media/(\d{1,6})\.svg",
        lambda number, _: _page(pages.cover(int(number)))._replace(kind="image/svg+xml"),
    ),
    (r"/quotes/?", lambda _: _page(pages.quotes(1))),
    (r"/quotes/page/(\d{1,6})/?", lambda number, _: _page(pages.quotes(int(number)))),
    (r"/quotes/tag/([^/]+)/?", lambda name, _: _page(pages.tag(name, 1))),
    (r"/quotes/tag/([^/]+)/page/(\d{1,6})/?", lambda name, number, _: _page(pages.tag(name, int(number)))),
    (r"/quotes/author/([^/]+)/?", lambda name, _: _page(pages.author(name))),
    (r"/prices\.csv", _prices_csv),
    (r"/prices\.json", _prices_json),
    (r"/private/.*", lambda _: Answer(pages.page("Private", "<h1>robots.txt asks you not to read this</h1>"))),
    (r"/slow", _slow),
    (r"/fail", _fail),
    (r"/flaky", _flaky),
)
_COMPILED = tuple((re.compile(pattern), answer) for pattern, answer in ROUTES)


def answer_for(address: str) -> Answer:
    parts = urlsplit(address)
    path = unquote(parts.path)
    for pattern, answer in _COMPILED:
        match = pattern.fullmatch(path)
        if match:
            return answer(*match.groups(), Query(parts.query))
    return Answer(pages.not_found(), status=404)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "DemoSite"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        answer = answer_for(self.path)
        body = answer.body.encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(body)))
        if answer.retry_after:
            self.send_header("Retry-After", re.sub(r"[^\w ,:+-]", "", answer.retry_after))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the name is the base class's

    def log_message(self, *_: object) -> None:
        """Stay silent: each page of each crawl would be a line of the panel's own output."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__((host, port), Handler)

    def server_bind(self) -> None:
        """As the base class, without its look-up of the host's full name, which can hang offline."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        """Refuse rather than start threads without end."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, *_: object) -> None:
        """A client that went away is no news."""

    @property
    def url(self) -> str:
        return f"http://{f'[{self.server_name}]' if ':' in self.server_name else self.server_name}:{self.server_port}/"


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bind", action="append", type=_address, metavar="HOST:PORT", help="default 127.0.0.1:8099")
    addresses = parser.parse_args().bind or [("127.0.0.1", 8099)]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    servers = []
    for host, port in addresses:
        try:
            servers.append(Server(host, port))
        except OSError as error:
            print(f"The demo site cannot listen on {host}:{port}: {error.strerror}.", file=sys.stderr)
            return 1
    for server in servers:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 3600}, daemon=True).start()
        print(f"Demo site on {server.url}", flush=True)
    stopping.wait()
    for server in servers:
        server.server_close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
