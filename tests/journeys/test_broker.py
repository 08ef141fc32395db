"""The broker dies, forgets everything, or moves: launches are accepted, crawls do not notice, nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
from channels_redis.pubsub import RedisPubSubChannelLayer
from django.conf import settings
from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

from apps.core import valkey as addresses
from apps.runs import live
from apps.runs.live import publish
from apps.runs.live.notices import mailbox
from tests.journeys.rabbits import SCRIPT, rabbit
from tests.journeys.valkeys import Server, Watched, until, valkey, watched
from tests.panel import Panel, panel

pytestmark = pytest.mark.timeout(420)

LINES = [f"line {number}" for number in range(1, 1501)]
AT_ONCE = {"count": 5, "per_second": 0, "items_every": 5}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with valkey() as started:
        yield started


@pytest.fixture(scope="module")
def on_valkey(server: Server) -> Iterator[Panel]:
    with panel("process", slots=4, REDIS_URL=server.url) as started:
        yield started


@pytest.fixture(scope="module")
def many() -> Iterator[Watched]:
    with watched() as started:
        yield started


@pytest.fixture(scope="module")
def on_sentinels(many: Watched) -> Iterator[Panel]:
    with panel("process", slots=4, REDIS_URL=many.url) as started:
        yield started


def crawl(running: Panel, name: str, seconds: float = 0) -> int:
    """A run of 1 500 lines over at least that many seconds, or one that ends at once."""
    wanted = {"count": len(LINES), "per_second": len(LINES) / seconds, "items_every": 10} if seconds else AT_ONCE
    return running.run(running.job(name, "slow", **wanted))


def assert_whole(running: Panel, run: int) -> None:
    """Ended well, in one attempt, with every line and item once and in order."""
    ended = running.wait(run)
    assert (ended["state"], ended["attempt"]) == ("succeeded", 1)
    assert [line for line in running.lines(run) if line.startswith("line ")] == LINES
    assert [item["n"] for item in running.items(run)] == list(range(1, len(LINES) // 10 + 1))


def is_consumed(server: Server) -> bool:
    """A worker waits for messages there and has left none."""
    with server.client() as client, contextlib.suppress(RedisError, OSError):
        waiting = [one for one in client.client_list() if one["cmd"] in {"brpop", "bzmpop"}]
        return bool(waiting) and client.llen("control") == 0
    return False


def is_ready(running: Panel) -> bool:
    return requests.get(f"{running.url}/readyz", timeout=30).ok


def test_launches_are_accepted_and_start_while_the_broker_is_down(on_valkey: Panel, server: Server) -> None:
    long = crawl(on_valkey, "long", seconds=30)
    on_valkey.until(long, "running")
    server.kill()
    started = time.monotonic()
    launched = [crawl(on_valkey, f"launched {number}") for number in range(3)]
    assert time.monotonic() - started < 15, "six requests that would send hints"
    for run in launched:
        assert on_valkey.wait(run, 30)["state"] == "succeeded"
    assert not is_ready(on_valkey)

    last = crawl(on_valkey, "just before it is back")
    server.start()
    assert on_valkey.wait(last, 30)["state"] == "succeeded"
    until(lambda: is_consumed(server), 30, "the worker does not take messages again")
    until(lambda: is_ready(on_valkey), 30, "the panel does not say that it is ready")
    assert_whole(on_valkey, long)


def test_losing_every_message_loses_nothing(on_valkey: Panel, server: Server) -> None:
    long = crawl(on_valkey, "long, and the broker forgets", seconds=20)
    on_valkey.until(long, "running")
    runs = [crawl(on_valkey, f"many {number}") for number in range(9)]
    for _ in range(20):
        with server.client() as client:
            client.flushall()
        time.sleep(0.3)
    for run in runs:
        ended = on_valkey.wait(run, 60)
        assert (ended["state"], ended["attempt"]) == ("succeeded", 1)
    assert_whole(on_valkey, long)
    until(lambda: is_consumed(server), 30, "the worker does not take messages again")


def test_the_panel_follows_the_master_in_the_middle_of_a_run(on_sentinels: Panel, many: Watched) -> None:
    install = (on_sentinels.home / "keys" / "install").read_text().strip()
    long = crawl(on_sentinels, "long", seconds=40)
    on_sentinels.until(long, "running")
    before = many.master
    until(lambda: is_consumed(before), 10, "the worker does not take messages")
    before.kill()
    launched = crawl(on_sentinels, "launched while there is no master")
    assert on_sentinels.wait(launched, 30)["state"] == "succeeded"

    until(lambda: any(one.is_master() for one in many.data if one is not before), 30, "no failover")
    now = many.master
    until(lambda: is_consumed(now), 30, "the worker did not follow the master")
    until(lambda: is_ready(on_sentinels), 30, "the panel does not say that it is ready")
    with now.client() as client:
        until(lambda: bool(client.xlen(f"live:{install}:{long}")), 15, "live lines did not follow the master")
        until(lambda: bool(client.keys("*throttle:*")), 15, "the cache did not follow the master")

    before.start()
    until(lambda: not before.is_master(), 30, "the old master was not made a replica")
    assert on_sentinels.wait(crawl(on_sentinels, "afterwards"), 30)["state"] == "succeeded"
    assert_whole(on_sentinels, long)


def in_a_thread(work: Coroutine[Any, Any, bool]) -> bool:
    """A browser that an earlier test has opened keeps a loop running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def test_notices_channels_and_caches_follow_the_master(many: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    until(many.everybody_knows, 40, "the Sentinels are not in order")
    monkeypatch.setattr(settings, "REDIS_URL", many.url)
    monkeypatch.setattr(publish, "_publisher", publish._Publisher())
    cache = RedisCache([many.url], {"OPTIONS": {"pool_class": "apps.core.valkey.CachePool", "socket_timeout": 1}})
    cache.set("colour", "red")
    assert cache.get("colour") == "red"

    async def told(attempts: int) -> bool:
        """Notices may be lost; sooner or later one must come through."""
        async with mailbox() as box:
            for _ in range(attempts):
                await asyncio.to_thread(live.notice, 7, "running")
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(box.filled.wait(), 0.5)
                    return box.take() == {7: "running"}
        return False

    async def passed_on() -> bool:
        layer = RedisPubSubChannelLayer(hosts=[addresses.channel_host(many.url)])
        channel = await layer.new_channel()
        await layer.group_add("group", channel)
        await layer.group_send("group", {"type": "hello"})
        try:
            return bool(await asyncio.wait_for(layer.receive(channel), 5))
        finally:
            await layer.flush()

    assert in_a_thread(told(10))
    assert in_a_thread(passed_on())
    old = many.master
    old.kill()
    until(lambda: any(one.is_master() for one in many.data if one is not old), 30, "no failover")
    assert in_a_thread(told(30))
    assert in_a_thread(passed_on())
    cache.set("colour", "blue")
    assert cache.get("colour") == "blue"


@pytest.mark.skipif(not Path(SCRIPT).exists(), reason="no RabbitMQ: apt-get install -y rabbitmq-server")
def test_rabbitmq_carries_the_messages_and_may_die_as_well() -> None:
    with rabbit() as server, panel("process", slots=4, CLAWPANEL_BROKER_URL=server.url) as running:
        long = crawl(running, "long", seconds=25)
        running.until(long, "running")
        assert server.queue("control")[1] == 1
        server.kill()
        launched = crawl(running, "launched while there is no broker")
        assert running.wait(launched, 30)["state"] == "succeeded"
        assert not is_ready(running)
        server.start()
        until(lambda: server.queue("control")[1] == 1, 60, "the worker does not take messages again")
        until(lambda: is_ready(running), 30, "the panel does not say that it is ready")
        assert_whole(running, long)

        # Hints go there again as well: with the worker frozen they pile up, beyond those it holds already.
        worker = running.process_with("celery", " worker ")
        worker.suspend()
        try:
            for number in range(10):
                crawl(running, f"hint {number}")
            until(lambda: server.queue("control")[0] > 0, 10, "hints do not reach the broker that is back")
        finally:
            worker.resume()
        until(lambda: server.queue("control")[0] == 0, 30, "the worker does not take messages")
