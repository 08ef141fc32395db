"""Requests of the panel to addresses that people have typed: no private network, one deadline, bounded answers."""

from __future__ import annotations

import gzip
import http.server
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.core import safe_http
from apps.core.safe_http import Allowed, CallRefused, fetch, is_public, target_of

CASES = Path(__file__).parents[2] / "cases/lists/ssrf_urls.tsv"
ROWS = [line.split("\t")[:2] for line in CASES.read_text().splitlines() if line][1:]
PUBLIC, PRIVATE = "93.184.215.14", "172.18.0.5"


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Nothing is connected; names of the list resolve without a network."""
    seen: list[Any] = []
    real = socket.getaddrinfo

    def looked_up(host: str, port: int, **kinds: Any) -> Any:
        if host.endswith(".test") or host == "redis":
            host = PRIVATE if host == "redis" else PUBLIC
        return real(host, port, **kinds)

    def connect(_self: socket.socket, where: Any) -> None:
        seen.append(where)
        raise ConnectionRefusedError

    monkeypatch.setattr(safe_http.socket, "getaddrinfo", looked_up)
    monkeypatch.setattr(safe_http.socket.socket, "connect", connect)
    return seen


@pytest.mark.parametrize(("verdict", "url"), ROWS)
def test_the_list_of_addresses(verdict: str, url: str, dialled: list[Any]) -> None:
    with pytest.raises(CallRefused):
        fetch("GET", url, allowed=Allowed(hosts=None), tries=1)
    assert bool(dialled) is (verdict == "allow")
    if verdict == "allow-if-listed":
        with pytest.raises(CallRefused):
            fetch("GET", url, allowed=Allowed.read(["10.1.2.0/24"]), tries=1)
        assert dialled == [("10.1.2.3", 80)]


@pytest.mark.parametrize(
    "url",
    [
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[fe80::1%25eth0]/",
        "http://[::]/",
        "http://0/",
        "http://127.0.0.1./",
        "http://example.test\\@127.0.0.1/",
        "http://example.test /",
        "http://exam\tple.test/",
        "http://example.test:0x50/",
        "http://例え.test/",
        "http:///path",
        "//example.test/",
        "HTTP://169.254.169.254/",
        "http://example.test:99999/",
        "http://" + "a" * 300 + ".test/",
        "",
    ],
)
def test_other_spellings_of_what_is_forbidden(url: str, dialled: list[Any]) -> None:
    with pytest.raises(CallRefused):
        fetch("GET", url, allowed=Allowed(hosts=None), tries=1)
    assert dialled == []


def test_a_listed_network_never_opens_this_machine() -> None:
    networks = Allowed.read(["0.0.0.0/0", "::/0"]).networks
    assert is_public(ipaddress.ip_address("10.0.0.1"), networks)
    for address in ("127.0.0.1", "169.254.169.254", "0.0.0.0", "::1", "fe80::1", "224.0.0.1"):  # noqa: S104 (compared)
        assert not is_public(ipaddress.ip_address(address), networks)


@pytest.mark.parametrize(
    ("entries", "url", "taken"),
    [
        (["api.example.com"], "https://api.example.com/x", True),
        (["API.example.com"], "https://Api.Example.COM./x", True),
        (["api.example.com"], "https://example.com/", False),
        (["api.example.com"], "https://evil-api.example.com/", False),
        (["api.example.com"], "https://api.example.com.evil.test/", False),
        (["api.example.com"], "https://api.example.com:8443/", False),
        (["api.example.com:8443"], "https://api.example.com:8443/", True),
        (["*.example.com"], "https://a.b.example.com/", True),
        (["*.example.com"], "https://example.com/", False),
        ([], "https://api.example.com/", False),
        (["93.184.215.14"], "http://93.184.215.14/", True),
        (["api.example.com"], "http://93.184.215.14/", False),
    ],
)
def test_only_listed_hosts_are_called(entries: list[str], url: str, taken: bool) -> None:
    assert Allowed.read(entries).takes(target_of(url)) is taken


def test_one_bad_address_among_good_ones_is_enough(monkeypatch: pytest.MonkeyPatch, dialled: list[Any]) -> None:
    family = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
    monkeypatch.setattr(
        safe_http.socket, "getaddrinfo", lambda *_a, **_k: [(*family, (PUBLIC, 80)), (*family, (PRIVATE, 80))]
    )
    with pytest.raises(CallRefused):
        fetch("GET", "http://example.test/", allowed=Allowed(hosts=None), tries=1)
    assert dialled == []


def test_the_address_that_was_checked_is_the_one_that_is_dialled(
    monkeypatch: pytest.MonkeyPatch, dialled: list[Any]
) -> None:
    """A name that answers with a public address first and with a private one from then on."""
    asked: list[str] = []
    family = (socket.AF_INET, socket.SOCK_STREAM, 6, "")

    def rebinding(host: str, port: int, **_kinds: Any) -> Any:
        asked.append(host)
        return [(*family, (PUBLIC if len(asked) == 1 else PRIVATE, port))]

    monkeypatch.setattr(safe_http.socket, "getaddrinfo", rebinding)
    with pytest.raises(CallRefused):
        fetch("GET", "http://rebind.test/", allowed=Allowed(hosts=None), tries=1)
    assert (asked, dialled) == (["rebind.test"], [(PUBLIC, 80)])


# -- with a server that is really there -----------------------------------------------------------------------------


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    answer: Callable[[http.server.BaseHTTPRequestHandler], None]
    asked: list[tuple[str, str, dict[str, str], bytes]]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server: Any = self.server
        length = int(self.headers.get("Content-Length") or 0)
        server.asked.append((self.command, self.path, dict(self.headers), self.rfile.read(length)))
        try:
            server.answer(self)
        except OSError:
            return

    do_POST = do_GET  # noqa: N815 (the server's name)

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), Handler)
    made.asked = []
    worker = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    worker.start()
    yield made
    made.shutdown()
    made.server_close()


def says(
    content: bytes, *, status: int = 200, headers: dict[str, str] | None = None
) -> Callable[[http.server.BaseHTTPRequestHandler], None]:
    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def ask(server: Server, method: str = "GET", path: str = "/", **chosen: Any) -> bytes:
    port = server.server_address[1]
    host = f"localhost:{port}"
    return fetch(
        method, f"http://{host}{path}", allowed=Allowed.read([host]), guard=lambda _a, _n: True, **chosen
    ).content


def test_an_answer_arrives_with_what_was_sent(server: Server) -> None:
    server.answer = says(b'{"n":1}')

    assert ask(server, "POST", "/a?b=1", headers={"X-Key": "s"}, body=b"{}") == b'{"n":1}'

    method, path, headers, body = server.asked[0]
    assert (method, path, body) == ("POST", "/a?b=1", b"{}")
    assert headers["X-Key"] == "s"
    assert headers["Host"] == f"localhost:{server.server_address[1]}"


def test_without_the_guard_lifted_this_machine_is_not_called(server: Server) -> None:
    host = f"localhost:{server.server_address[1]}"
    with pytest.raises(CallRefused, match="not allowed"):
        fetch("GET", f"http://{host}/", allowed=Allowed.read([host, "127.0.0.0/8"]))
    assert server.asked == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(server: Server, status: int) -> None:
    server.answer = says(b"", status=status, headers={"Location": "http://169.254.169.254/latest/"})
    with pytest.raises(CallRefused, match="redirect"):
        ask(server)
    assert len(server.asked) == 1


@pytest.mark.parametrize(("status", "times"), [(500, 3), (503, 3), (429, 3), (400, 1), (404, 1)])
def test_what_may_pass_is_tried_three_times(server: Server, status: int, times: int) -> None:
    server.answer = says(b"", status=status)
    with pytest.raises(CallRefused, match=str(status)):
        ask(server)
    assert len(server.asked) == times


def test_the_second_try_may_succeed(server: Server) -> None:
    answers = [says(b"1"), says(b"", status=503)]

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        answers.pop()(handler)

    server.answer = answer
    assert ask(server) == b"1"


def test_an_answer_has_at_most_a_mebibyte(server: Server) -> None:
    server.answer = says(b"x" * (1024 * 1024))
    assert len(ask(server)) == 1024 * 1024
    server.answer = says(b"x" * (1024 * 1024 + 1))
    with pytest.raises(CallRefused, match="larger"):
        ask(server)


def test_a_packed_answer_is_unpacked_no_further_than_that(server: Server) -> None:
    gzipped = {"Content-Encoding": "gzip"}
    server.answer = says(gzip.compress(b'{"n":1}'), headers=gzipped)
    assert ask(server) == b'{"n":1}'

    bomb = gzip.compress(b"\0" * (200 * 1024 * 1024), compresslevel=9)
    server.answer = says(bomb, headers=gzipped)
    began = time.monotonic()
    with pytest.raises(CallRefused, match="larger"):
        ask(server)
    assert time.monotonic() - began < 2
    server.answer = says(b"x", headers={"Content-Encoding": "br"})
    with pytest.raises(CallRefused):
        ask(server)


def test_an_answer_that_breaks_off_is_none(server: Server) -> None:
    server.answer = says(b"half", headers={"Content-Length": "1000"})
    with pytest.raises(CallRefused, match="reached"):
        ask(server, tries=1)


@pytest.mark.parametrize("part", ["header", "body", "silence"])
def test_drops_and_silence_end_with_the_deadline(server: Server, part: str) -> None:
    def drips(handler: http.server.BaseHTTPRequestHandler) -> None:
        if part == "body":
            handler.send_response(200)
            handler.send_header("Content-Length", "100000")
            handler.end_headers()
        for _ in range(60):
            if part != "silence":
                handler.wfile.write(b"x")
                handler.wfile.flush()
            time.sleep(0.1)

    server.answer = drips
    began = time.monotonic()
    with pytest.raises(CallRefused, match="in time"):
        ask(server, deadline_seconds=0.7)
    assert time.monotonic() - began < 2.5


def test_nobody_there_is_said_without_details() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    host = f"localhost:{port}"
    with pytest.raises(CallRefused, match="could not be reached"):
        fetch("GET", f"http://{host}/", allowed=Allowed.read([host]), guard=lambda _a, _n: True)
