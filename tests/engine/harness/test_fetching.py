"""The fetcher against a scripted server: retries, politeness, limits, odd answers."""

from __future__ import annotations

import email.utils
import gzip
import time
import zlib
from typing import Any

import pytest

from tests.engine.conftest import Finished, ScriptedServer, Seen, Start

Answer = tuple[int, dict[str, str], bytes]

SPIDER = """
from clawspider import *
class S(BaseSpider):
    name = "s"
    delay = 0
    backoff = 0.01
    respect_robots = False
    {settings}
    def start_requests(self):
        for path in self.params["paths"]:
            yield Request(self.params["url"] + path, **self.params.get("options", {{}}))
    def parse(self, response):
        yield {{"url": response.url.partition("/")[2].partition("/")[2].partition("/")[2], "text": response.text}}
"""


@pytest.fixture
def fetch(start_spider: Start, server: ScriptedServer) -> Any:
    def fetch_paths(*paths: str, settings: str = "", env: dict[str, str] | None = None, **options: Any) -> Finished:
        params = {"url": server.url, "paths": paths, "options": options}
        return start_spider(SPIDER.format(settings=settings), params=params, env=env).finish()

    return fetch_paths


def texts(run: Finished) -> list[str]:
    return [item["text"] for item in run.items]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again(fetch: Any, server: ScriptedServer, status: int) -> None:
    server.script = lambda _, count: (200, {}, b"at last") if count == 2 else (status, {}, b"")
    run = fetch("/a")
    assert (run.code, texts(run)) == (0, ["at last"])
    assert run.records("finish")[0]["stats"]["retries"] == 2
    assert [one["status"] for one in run.records("request")] == [status, status, 200]


def test_it_gives_up_after_the_retries(fetch: Any, server: ScriptedServer) -> None:
    server.script = lambda *_: (500, {}, b"")
    run = fetch("/a", settings="retries = 2")
    assert (run.code, len(server.seen)) == (1, 3)
    assert "the server answered 500" in run.log


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_clear_no_is_not_asked_again(fetch: Any, server: ScriptedServer, status: int) -> None:
    server.script = lambda *_: (status, {}, b"")
    assert fetch("/a").code == 1
    assert len(server.seen) == 1


def test_a_spider_may_accept_an_error_page(fetch: Any, server: ScriptedServer) -> None:
    server.script = lambda *_: (404, {}, b"gone")
    assert texts(fetch("/a", settings="accept_statuses = (404,)")) == ["gone"]


@pytest.mark.parametrize("kind", ["seconds", "date"])
def test_retry_after_is_honoured(fetch: Any, server: ScriptedServer, kind: str) -> None:
    def script(_: Seen, count: int) -> Answer:
        value = "1" if kind == "seconds" else email.utils.formatdate(time.time() + 2, usegmt=True)
        return (200, {}, b"ok") if count else (503, {"Retry-After": value}, b"")

    server.script = script
    assert fetch("/a").code == 0
    assert server.seen[1].at - server.seen[0].at >= 0.9


def test_a_post_is_repeated_only_when_the_server_says_it_is_busy(fetch: Any, server: ScriptedServer) -> None:
    server.script = lambda seen, count: (200, {}, seen.body) if count else (int(seen.path[1:]), {}, b"")
    run = fetch("/500", "/503", method="POST", json_body={"q": 1})
    assert texts(run) == ['{"q": 1}']
    assert server.paths().count("/500") == 1
    assert server.seen[0].headers["Content-Type"] == "application/json"


def test_an_unreachable_host_is_said_plainly(start_spider: Start) -> None:
    text = SPIDER.format(settings="retries = 1")
    run = start_spider(text, params={"url": "http://127.0.0.1:9", "paths": ["/"]}).finish()
    assert run.code == 1
    assert "<GET http://127.0.0.1:9/>: Connection refused" in run.log
    assert run.records("request")[0]["status"] is None


def test_robots_txt_is_obeyed(fetch: Any, server: ScriptedServer) -> None:
    def script(seen: Seen, _: int) -> Answer:
        return (200, {}, b"User-agent: *\nDisallow: /private/\n" if seen.path == "/robots.txt" else b"page")

    server.script = script
    run = fetch("/private/a", "/open", settings="respect_robots = True")
    assert (run.code, server.paths()) == (0, ["/robots.txt", "/open"])
    assert "robots.txt does not allow it" in run.log


@pytest.mark.parametrize(("status", "paths"), [(404, ["/robots.txt", "/a"]), (403, ["/robots.txt", "/a"])])
def test_no_robots_txt_allows_all(fetch: Any, server: ScriptedServer, status: int, paths: list[str]) -> None:
    server.script = lambda seen, _: (status if seen.path == "/robots.txt" else 200, {}, b"")
    assert fetch("/a", settings="respect_robots = True").code == 0
    assert server.paths() == paths


def test_a_robots_txt_that_fails_forbids_all(fetch: Any, server: ScriptedServer) -> None:
    server.script = lambda *_: (500, {}, b"")
    assert fetch("/a", settings="respect_robots = True").code == 1
    assert set(server.paths()) == {"/robots.txt"}


def test_requests_to_a_host_keep_their_distance(fetch: Any, server: ScriptedServer) -> None:
    server.script = lambda *_: (200, {}, b"")
    fetch("/a", "/b", "/c", settings="delay = 0.3")
    gaps = [after.at - before.at for before, after in zip(server.seen, server.seen[1:], strict=False)]
    assert min(gaps) > 0.25


def test_several_requests_are_under_way_at_once(fetch: Any, server: ScriptedServer) -> None:
    def script(*_: object) -> Answer:
        time.sleep(1)
        return 200, {}, b""

    server.script = script
    fetch(*(f"/{n}" for n in range(4)), settings="concurrency = 4")
    assert server.seen[-1].at - server.seen[0].at < 0.9


def test_the_same_page_is_fetched_once(fetch: Any, server: ScriptedServer) -> None:
    server.script = lambda *_: (200, {}, b"")
    run = fetch("/a", "/a#part", "/a", "/b")
    assert sorted(server.paths()) == ["/a", "/b"]
    assert run.records("finish")[0]["stats"]["filtered"] == 2
    server.seen.clear()
    fetch("/a", "/a", dont_filter=True)
    assert server.paths() == ["/a", "/a"]


def test_redirects_are_followed_but_not_without_end_and_not_to_elsewhere(fetch: Any, server: ScriptedServer) -> None:
    def script(seen: Seen, _: int) -> Answer:
        target = {"/a": "/b", "/loop": "/loop", "/file": "file:///etc/passwd", "/data": "data:,x"}.get(seen.path)
        return (302, {"Location": target}, b"") if target else (200, {}, b"end")

    server.script = script
    run = fetch("/a", "/loop", "/file", "/data")
    assert run.items == [{"url": "b", "text": "end"}]
    assert "root:" not in run.log


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", lambda body: zlib.compress(body, wbits=-15))],
)
def test_packed_answers_are_unpacked(fetch: Any, server: ScriptedServer, encoding: str, pack: Any) -> None:
    server.script = lambda *_: (200, {"Content-Encoding": encoding}, pack("Grüße".encode()))
    assert texts(fetch("/a")) == ["Grüße"]


@pytest.mark.parametrize("bomb", [False, True])
def test_an_answer_beyond_the_limit_is_refused(fetch: Any, server: ScriptedServer, bomb: bool) -> None:
    body = b"x" * 5_000_000
    server.script = lambda *_: (200, {"Content-Encoding": "gzip"}, gzip.compress(body)) if bomb else (200, {}, body)
    run = fetch("/a", settings="max_body_bytes = 1_000_000")
    assert "the answer is larger than 1,000,000 bytes" in run.log
    assert len(server.seen) == 1


def test_a_server_that_never_answers_costs_the_timeout_only(fetch: Any, server: ScriptedServer) -> None:
    def script(*_: object) -> Answer:
        time.sleep(3)
        return 200, {}, b""

    server.script = script
    run = fetch("/a", settings="timeout = 0.3; retries = 0")
    assert "no answer in time" in run.log
    assert run.seconds < 3


def test_an_answer_cut_short_is_asked_again(fetch: Any, server: ScriptedServer) -> None:
    server.script = lambda _, count: (200, {}, b"whole") if count else (200, {"Content-Length": "100"}, b"half")
    run = fetch("/a", settings="timeout = 0.5")
    assert texts(run) == ["whole"]


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("text/html; charset=iso-8859-1", "é".encode("latin-1"), "é"),
        ("text/html", b'<meta charset="gb2312">' + "中".encode("gb2312"), '<meta charset="gb2312">中'),
        ("text/html; charset=no-such", "é".encode(), "é"),
        ("text/html", b"\xff\xfe", "��"),
        ("", b"", ""),
    ],
)
def test_text_is_read_in_the_encoding_of_the_page(
    fetch: Any, server: ScriptedServer, kind: str, body: bytes, text: str
) -> None:
    server.script = lambda *_: (200, {"Content-Type": kind}, body)
    assert texts(fetch("/a")) == [text]


def test_addresses_outside_ascii_are_escaped(fetch: Any, server: ScriptedServer) -> None:
    server.script = lambda *_: (200, {}, b"")
    assert fetch("/größe?q=ü b%20c").code == 0
    assert server.paths() == ["/gr%C3%B6%C3%9Fe?q=%C3%BC%20b%20c"]


def test_a_proxy_of_the_environment_is_used(start_spider: Start, server: ScriptedServer) -> None:
    server.script = lambda *_: (200, {}, b"by proxy")
    text = SPIDER.format(settings="")
    env = {"http_proxy": server.url}
    run = start_spider(text, params={"url": "http://shop.test", "paths": ["/a"]}, env=env).finish()
    assert (texts(run), server.paths()) == (["by proxy"], ["http://shop.test/a"])


def test_the_spider_says_who_it_is(fetch: Any, server: ScriptedServer) -> None:
    server.script = lambda *_: (200, {"Set-Cookie": "k=v"}, b"")
    fetch("/a", "/b", settings='user_agent = "me/1"; headers = {"X-A": "1"}; concurrency = 1', headers={"X-B": "2"})
    first, second = (one.headers for one in server.seen)
    assert (first["User-Agent"], first["X-A"] if "X-A" in first else first["X-a"]) == ("me/1", "1")
    assert second["Cookie"] == "k=v"


@pytest.mark.parametrize("address", ["ftp://x/", "file:///etc/passwd", "javascript:x", "/relative", "http://", ""])
def test_only_web_addresses_are_requests(start_spider: Start, address: str) -> None:
    run = start_spider(SPIDER.format(settings=""), params={"url": address, "paths": [""]}).finish()
    assert run.code == 1
    assert "needs an http or https address" in run.log
