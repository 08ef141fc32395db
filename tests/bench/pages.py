"""Server time of pages with 10 000 finished runs, and what the single thread hop is worth."""

from __future__ import annotations

import concurrent.futures
import statistics
import subprocess
import sys
import time

import requests

from tests.bench.figures import Figure
from tests.bench.logs import login
from tests.panel import ROOT, Panel, free_port

FILL = """
INSERT INTO runs_run (project_id, job_id, job_name, spider_id, version_id, state, reason, detail, priority, trigger,
    request_id, spec, memory_bytes, month, worker, token, attempt, stop_cause, queued_at, started_at, finished_at,
    exit_code, memory_warning, log_damaged, lines, warnings, errors, items, items_rejected, requests,
    memory_peak_bytes, stats, output, cpus, pools, selector, paused_seconds, repair_due, items_discarded)
SELECT project_id, job_id, job_name, spider_id, version_id,
    (ARRAY['succeeded', 'succeeded', 'succeeded', 'failed', 'timed_out', 'canceled'])[1 + n % 6],
    (ARRAY['', '', '', 'exit_nonzero', 'run_timeout', 'stopped_by_user'])[1 + n % 6],
    '{"exit_code": 1, "seconds": 60, "by": "admin"}', priority, trigger, gen_random_uuid(), spec, memory_bytes, month,
    worker, 1, 1, '', queued_at - n * interval '1 minute', started_at - n * interval '1 minute',
    finished_at - n * interval '1 minute', 0, false, false, 100, 0, 0, n, 0, 0, 0, '{}', '{}',
    cpus, pools, selector, 0, false, 0
FROM runs_run, generate_series(1, 10000) n WHERE id = (SELECT min(id) FROM runs_run);
ANALYZE runs_run;
"""


def fill(panel: Panel) -> None:
    """10 000 finished runs in the image of the sample's."""
    panel.manage("shell", "-c", f"from django.db import connection; connection.cursor().execute('''{FILL}''')")


def page_times(panel: Panel) -> list[Figure]:
    """Median server time of a page, taken in process with Django's test client so that no network is in it."""
    printed = panel.script(ROOT / "tests" / "bench" / "page_times.py")
    figures = []
    for line in printed.splitlines():
        name, queries, milliseconds = line.split("\t")
        reached = int(queries) <= 12 and float(milliseconds) < 60
        figures.append(
            Figure(name, f"{queries} queries, p50 {float(milliseconds):.0f} ms", "12 queries, 60 ms", reached)
        )
    return figures


def _rate(url: str, cookies: dict[str, str], seconds: float = 8, clients: int = 4) -> float:
    """Requests a second that `clients` keep-alive clients get out of `url`."""

    def client(_: int) -> int:
        count, session = 0, requests.Session()
        session.cookies.update(cookies)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            session.get(url, timeout=30, allow_redirects=False).raise_for_status()
            count += 1
        return count

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        return sum(pool.map(client, range(clients))) / seconds


def single_hop(panel: Panel, rounds: int = 3) -> Figure:
    """The run list from two daphnes on the same database, with and without the middleware, in turn."""
    cookies = dict(login(panel).cookies)
    servers = []
    addresses = []
    for without in ("", "1"):
        port = free_port()
        servers.append(
            subprocess.Popen(
                [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(port), "tests.bench.asgi:application"],
                cwd=ROOT,
                env={**panel.environment, "CLAW_BENCH_MANY_HOPS": without, "CLAWPANEL_DATABASE_POOL": "10"},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
        addresses.append(f"http://127.0.0.1:{port}")
        _wait(addresses[-1])
    try:
        ratios = []
        rates = []
        for _ in range(rounds):
            one, many = (_rate(f"{address}/runs/", cookies) for address in addresses)
            ratios.append(one / many)
            rates.append((one, many))
    finally:
        for server in servers:
            server.terminate()
            server.wait()
    ratio = statistics.median(ratios)
    one, many = (statistics.median(column) for column in zip(*rates, strict=True))
    value = f"{one:.0f} against {many:.0f} requests/s: {ratio:.2f} times"
    return Figure("run list from daphne, one thread hop against many", value, "1.3 times", ratio >= 1.3)


def _wait(address: str) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            requests.get(f"{address}/healthz", timeout=5)
        except requests.ConnectionError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"{address} did not come up")
