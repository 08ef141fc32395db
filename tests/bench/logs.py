"""How fast lines and items reach the store and the browser, and what that costs the agent."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import datetime
from typing import Any

import requests
import websockets

from tests.bench.figures import Figure, quantile
from tests.panel import PASSWORD, Panel


def bulk_log(panel: Panel, lines: int = 200_000) -> Figure:
    """Seconds from the last print to the last line in the store."""
    job = panel.job("bulk log", "meter", lines=lines)
    run = panel.wait(panel.run(job), 180)
    if run["state"] != "succeeded" or run["lines"] < lines:
        raise RuntimeError(f"bulk log: {run}")
    tail = panel.get(f"runs/{run['id']}/log/", after=lines - 1, limit=1)["results"]
    stored = datetime.fromisoformat(tail[0]["at"]).timestamp()
    late = stored - run["output"]["printed_at"]
    return Figure(f"{lines:,} lines of 100 bytes: complete after the last print", f"{late:.2f} s", "2 s", late <= 2)


def login(panel: Panel) -> requests.Session:
    """A signed-in browser session of the administrator."""
    session = requests.Session()
    page = session.get(f"{panel.url}/accounts/login/", timeout=20)
    page.raise_for_status()
    answer = session.post(
        f"{panel.url}/accounts/login/",
        data={"login": "admin", "password": PASSWORD, "csrfmiddlewaretoken": session.cookies["csrftoken"]},
        headers={"Referer": f"{panel.url}/accounts/login/"},
        timeout=20,
        allow_redirects=False,
    )
    if answer.status_code != 302:
        raise RuntimeError(f"sign in: {answer.status_code}")
    return session


async def _listen(panel: Panel, run: int, cookies: dict[str, str]) -> list[float]:
    """Milliseconds from `print()` to this client for each line that carries its time."""
    late: list[float] = []
    address = f"ws://127.0.0.1:{panel.port}/ws/runs/{run}/log/?after=0"
    headers = {"Cookie": "; ".join(f"{k}={v}" for k, v in cookies.items()), "Origin": panel.url}
    async with websockets.connect(address, additional_headers=headers, max_size=None) as socket:
        async for message in socket:
            now = time.time() * 1000
            frame: dict[str, Any] = json.loads(message)
            if frame["t"] == "lines":
                for _, _, _, text in frame["rows"]:
                    stamp = text.rpartition(" @")[2]
                    if stamp.isdigit():
                        late.append(now - int(stamp))
                await socket.send(json.dumps({"t": "ack", "line": frame["rows"][-1][0]}))
            elif frame["t"] == "end":
                return late
    return late


def live_latency(panel: Panel, seconds: int = 10) -> list[Figure]:
    """p50 and p99 from `print()` to a websocket client at 1 000 lines a second."""
    job = panel.job("live", "meter", lines=1000 * seconds, per_second=1000)
    cookies = dict(login(panel).cookies)
    late = asyncio.run(asyncio.wait_for(_listen(panel, panel.run(job), cookies), seconds + 60))
    if len(late) < 1000 * seconds:
        raise RuntimeError(f"only {len(late)} lines arrived")
    p50, p99 = quantile(late, 0.5), quantile(late, 0.99)
    return [
        Figure("live line, print() to websocket, 1 000 lines/s: p50", f"{p50:.0f} ms", "100 ms", p50 <= 100),
        Figure("the same, p99", f"{p99:.0f} ms", "250 ms", p99 <= 250),
    ]


def agent_load(panel: Panel, runs: int = 20, seconds: int = 20) -> Figure:
    """Share of a core the worker takes while `runs` runs print 1 000 lines a second each."""
    job = panel.job("load", "meter", limits={"memory_mb": 64}, lines=1000 * seconds, per_second=1000)
    started = [panel.run(job) for _ in range(runs)]
    worker = panel.process_with("celery", "worker")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and panel.get("runs/", state="running", job=job, limit=100)["results"] != []:
        if len(panel.get("runs/", state="running", job=job, limit=100)["results"]) == runs:
            break
        time.sleep(0.3)
    before, clock = worker.cpu_times(), time.monotonic()
    time.sleep(seconds / 2)
    after, elapsed = worker.cpu_times(), time.monotonic() - clock
    share = 100 * (after.user + after.system - before.user - before.system) / elapsed
    ends = [panel.wait(run, 180) for run in started]
    if any(end["lines"] < 1000 * seconds for end in ends):
        raise RuntimeError("agent load: lines are missing")
    return Figure(f"agent with {runs} runs at 1 000 lines/s each", f"{share:.0f} % of a core", "40 %", share <= 40)


def item_rate(panel: Panel, items: int = 300_000) -> Figure:
    """Items a second of about 300 bytes from one run into PostgreSQL, start of the spider to the last one stored."""
    job = panel.job("items", "meter", items=items)
    run = panel.run(job)
    started = datetime.fromisoformat(panel.until(run, "running")["started_at"]).timestamp()
    # Seen from outside: the run's own end is when the program ended, not when its last item was stored.
    deadline = time.monotonic() + 180
    while (stored := panel.get(f"runs/{run}/")["items"]) < items:
        if time.monotonic() > deadline:
            raise RuntimeError(f"only {stored} items were stored")
        time.sleep(0.05)
    rate = items / (time.time() - started)
    return Figure("items of 300 bytes from one run into PostgreSQL", f"{rate:,.0f} a second", "20,000", rate >= 20_000)
