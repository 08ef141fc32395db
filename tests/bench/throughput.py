"""Runs per minute beside bare docker-py, and how long a run is alone when its worker goes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psutil
import psycopg

from apps.engine.docker_api import connect, create_container
from apps.engine.executors.docker.profile import LABEL_INSTALL, container_config
from apps.engine.executors.layout import remove_secrets, run_ids, write_secrets
from apps.engine.harness_copy import install_harness
from apps.engine.settings import EngineSettings
from apps.engine.spool import create_spools
from apps.engine.types import MIB, Limits, RunSpec
from clawpanel.up.supervisor import STEADY_AFTER_SECONDS
from tests.bench.figures import Figure
from tests.bench.trigger import code_folder
from tests.panel import Panel

NOTHING = {"lines": 0, "per_second": 0, "line_bytes": 20, "items": 0, "item_bytes": 0}
ROUNDS, RUNS = 5, 20  # short turns, so that what else the machine does meets both alike
PARALLEL = 8
LEAST_SHARE = 0.8
POLL_SECONDS = 0.02
PATIENCE_SECONDS = 120


def throughput(panel: Panel) -> list[Figure]:
    """Ours and bare in turn, from the opening of the node until the last container is gone."""
    if panel.executor != "docker":
        return []
    job = _job(panel, "no-op", NOTHING, overlap_max=PARALLEL)
    _ours(panel, job, PARALLEL)  # warms both sides
    _bare(panel, PARALLEL, PARALLEL)
    ours = theirs = 0.0
    for _ in range(ROUNDS):
        ours += _ours(panel, job, RUNS)
        theirs += _bare(panel, RUNS, PARALLEL)
    runs = ROUNDS * RUNS
    share = theirs / ours
    value = f"{runs * 60 / ours:.0f} a minute, bare {runs * 60 / theirs:.0f}: {share:.0%}"
    return [Figure(f"{runs} no-op runs, {PARALLEL} at a time", value, f"{LEAST_SHARE:.0%}", share >= LEAST_SHARE)]


def takeover(panel: Panel, times: int = 3) -> list[Figure]:
    """From the signal until another worker has taken the run over; `up` starts that one.

    It waits longer each time before it starts one again, so a few are all that say something.
    """
    job = _job(panel, "long", {**NOTHING, "lines": 100_000, "per_second": 5})
    run = panel.run(job)
    panel.until(run, "running")
    rows = []
    for name, end, most, middle in (
        ("kill -9", psutil.Process.kill, 30.0, 22.0),
        ("SIGTERM", psutil.Process.terminate, 10.0, 10.0),
    ):
        time.sleep(STEADY_AFTER_SECONDS)
        spans = [_takeover(panel, run, end) for _ in range(times)]
        value = f"median {statistics.median(spans):.1f} s, worst {max(spans):.1f} s"
        goal = f"median {middle:.0f} s, worst {most:.0f} s"
        reached = statistics.median(spans) < middle and max(spans) < most
        rows.append(Figure(f"takeover of a run after {name} of its worker ({panel.executor})", value, goal, reached))
    panel.post(f"runs/{run}/kill/", {})
    return rows


def _job(panel: Panel, name: str, parameters: dict[str, int], *, overlap_max: int = 1) -> int:
    limits = {"memory_mb": 64, "timeout_seconds": 3600}
    body = {"name": name, "spider": "meter", "parameters": parameters, "limits": limits, "env": {}, "overlap": "allow"}
    return int(panel.post("jobs/", {**body, "overlap_max": overlap_max})["id"])


@contextmanager
def _database(panel: Panel) -> Iterator[psycopg.Cursor[Any]]:
    """Asked directly: polling the API would be a load of its own."""
    with psycopg.connect(panel.environment["DATABASE_URL"], autocommit=True) as session, session.cursor() as cursor:
        yield cursor


def _ours(panel: Panel, job: int, runs: int) -> float:
    node = panel.get("nodes/")["results"][0]["id"]
    panel.post(f"nodes/{node}/cordon/", {})
    first = min(panel.run(job) for _ in range(runs))
    api = connect("")
    labels = {"label": [f"{LABEL_INSTALL}={_install(panel)}"]}
    with _database(panel) as cursor:
        began = time.perf_counter()
        panel.post(f"nodes/{node}/uncordon/", {})
        while _count(cursor, "SELECT count(*) FROM runs_run WHERE id >= %s AND finished_at IS NULL", first):
            time.sleep(POLL_SECONDS)
        while api.containers(all=True, filters=labels):
            time.sleep(POLL_SECONDS)
        elapsed = time.perf_counter() - began
        failed = _count(cursor, "SELECT count(*) FROM runs_run WHERE id >= %s AND state <> 'succeeded'", first)
    if failed:
        raise RuntimeError(f"{failed} of {runs} runs did not succeed")
    return elapsed


def _install(panel: Panel) -> str:
    said = panel.manage("shell", "-v", "0", "-c", "from django.conf import settings; print(settings.CLAWPANEL_INSTALL)")
    return said.strip().splitlines()[-1]


def _count(cursor: psycopg.Cursor[Any], query: str, *values: int) -> int:
    row = cursor.execute(query, values).fetchone()
    return int(row[0]) if row else 0


def _bare(panel: Panel, runs: int, parallel: int) -> float:
    """The very same containers, `parallel` at a time: created, started, waited for and removed."""
    settings = EngineSettings(install="bench", home=panel.home)
    image = connect("").images(name="clawpanel-runner")[0]["RepoTags"][0]
    harness = install_harness(settings.home)
    code = code_folder(panel)
    began = time.perf_counter()

    def one(number: int) -> None:
        api = connect("", timeout=PATIENCE_SECONDS)
        spec = RunSpec(
            install="bench",
            run_id=2 * 10**9 + number,
            attempt=1,
            token=1,
            request_id="bench",
            spider="meter",
            command=("python3", "meter.py"),
            code_dir=code,
            run_dir=panel.home / "bare" / f"n{began}-{number}",
            environment=image,
            params=NOTHING,
            limits=Limits(memory_bytes=64 * MIB),
        )
        create_spools(spec.run_dir, *run_ids(settings))
        secrets = settings.secrets_dir(spec.name)
        write_secrets(secrets, {}, *run_ids(settings))
        made = create_container(
            api, container_config(spec, settings, harness=harness, secrets=secrets, volumes=()), spec.name
        )
        try:
            api.start(made)
            if api.wait(made)["StatusCode"]:
                raise RuntimeError("a bare run failed")
        finally:
            api.remove_container(made, force=True)
            remove_secrets(secrets)

    with ThreadPoolExecutor(parallel) as pool:
        list(pool.map(one, range(runs)))
    return time.perf_counter() - began


def _takeover(panel: Panel, run: int, end: Callable[[psutil.Process], None]) -> float:
    with _database(panel) as cursor:
        token = _count(cursor, "SELECT token FROM runs_run WHERE id = %s", run)
        worker = panel.process_with("celery", "worker")
        began = time.perf_counter()
        end(worker)
        while _count(cursor, "SELECT token FROM runs_run WHERE id = %s", run) == token:
            if time.perf_counter() - began > 120:
                raise RuntimeError("nobody took the run over")
            time.sleep(POLL_SECONDS)
        return time.perf_counter() - began
