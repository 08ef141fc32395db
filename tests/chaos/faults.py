"""What may happen to a panel, each as one function that does it and ends it again. The supervisor does the rest."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime

import docker
import psutil
import psycopg
import redis
from celery import Celery
from kombu.exceptions import OperationalError

from tests.chaos.stage import Stage

CLOCK_OFF_SECONDS = 7200
CLOCK_SEEN_SECONDS = 20.0
HINTS = 10


def worker_killed(stage: Stage) -> None:
    _kill(stage, "worker", signal.SIGKILL)


def worker_told_to_leave(stage: Stage) -> None:
    _kill(stage, "worker", signal.SIGTERM)


def worker_frozen(stage: Stage) -> None:
    _freeze(stage, "worker")


def beat_killed(stage: Stage) -> None:
    _kill(stage, "beat", signal.SIGKILL)


def beat_told_to_leave(stage: Stage) -> None:
    _kill(stage, "beat", signal.SIGTERM)


def beat_frozen(stage: Stage) -> None:
    _freeze(stage, "beat")


def web_killed(stage: Stage) -> None:
    _kill(stage, "web", signal.SIGKILL)


def web_told_to_leave(stage: Stage) -> None:
    _kill(stage, "web", signal.SIGTERM)


def web_frozen(stage: Stage) -> None:
    _freeze(stage, "web")


def _kill(stage: Stage, name: str, kind: signal.Signals) -> None:
    process = stage.process(name)
    stage.killed_at.append((f"{name} {kind.name}", datetime.now(UTC)))
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(kind)
        process.wait(30)


def _freeze(stage: Stage, name: str) -> None:
    process = stage.process(name)
    with contextlib.suppress(psutil.NoSuchProcess):
        process.suspend()
        stage.pause(2)
        process.resume()


def broker_emptied(stage: Stage) -> None:
    with contextlib.suppress(redis.RedisError):
        stage.broker().flushall()


def broker_restarted(stage: Stage) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        stage.process("valkey").kill()


def broker_connections_cut(stage: Stage) -> None:
    with contextlib.suppress(redis.RedisError):
        stage.broker().client_kill_filter(_type="normal", skipme=True)
        stage.broker().client_kill_filter(_type="pubsub")


def broker_down(stage: Stage) -> None:
    process = stage.process("valkey")
    with stage.supervisor_looks_away():
        process.kill()
        time.sleep(stage.longest)


def hint_delivered_ten_times(stage: Stage) -> None:
    url = stage.panel.environment["REDIS_URL"]
    url = url.replace("unix://", "redis+socket://", 1).replace("?db=", "?virtual_host=", 1)
    with Celery(broker=url, set_as_current=False) as sender, contextlib.suppress(OSError, OperationalError):
        for _ in range(HINTS):
            for name in ("runs.wake", "runs.sweep"):
                sender.send_task(name, queue="control", retry=False)


def database_sessions_ended(stage: Stage) -> None:
    with contextlib.suppress(psycopg.Error), stage.database() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def database_stopped(stage: Stage) -> None:
    """As `pg_ctl stop -m immediate` does, and `start` a while later."""
    with stage.supervisor_looks_away():
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            os.kill(stage.postmaster(), signal.SIGQUIT)
        stage.pause()


def container_removed_by_hand(stage: Stage) -> None:
    running = [one for one in stage.ledger.containers() if one.status == "running"]
    if not running:
        return
    victim = stage.chance.choice(running)
    stage.hurt.add(int(victim.labels["clawpanel.run"]))
    with contextlib.suppress(docker.errors.APIError):
        victim.remove(force=True)


def clock_of_the_worker_off(stage: Stage) -> None:
    """By two hours, forward or back; it begins with it, follows what runs, and starts nothing new."""
    stage.clock.write_text(str(stage.chance.choice((-1, 1)) * CLOCK_OFF_SECONDS))
    _kill(stage, "worker", signal.SIGKILL)
    try:
        deadline = time.monotonic() + CLOCK_SEEN_SECONDS
        while "clock differs" not in _troubles(stage):
            if time.monotonic() > deadline:
                raise AssertionError("nobody saw that the worker's clock is off by two hours")
            time.sleep(0.2)
        stage.pause()
    finally:
        stage.clock.unlink()
        _kill(stage, "worker", signal.SIGKILL)


def _troubles(stage: Stage) -> str:
    with contextlib.suppress(psycopg.Error), stage.database() as connection:
        return " ".join(str(row[0]) for row in connection.execute("SELECT trouble FROM runs_node"))
    return ""


def disk_for_runs_full(stage: Stage) -> None:
    """Not a byte is left where output goes. Whoever writes meanwhile may lose it, and must not be called a success."""
    ballast = stage.panel.home / "runs" / ".ballast"
    try:
        with contextlib.suppress(OSError), ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(ballast.parent).free)
        stage.pause()
    finally:
        ballast.unlink()


Fault = Callable[[Stage], None]
ALWAYS: tuple[Fault, ...] = (
    worker_killed,
    worker_frozen,
    worker_told_to_leave,
    beat_killed,
    beat_frozen,
    beat_told_to_leave,
    web_killed,
    web_frozen,
    web_told_to_leave,
    broker_emptied,
    broker_restarted,
    broker_connections_cut,
    broker_down,
    hint_delivered_ten_times,
    database_sessions_ended,
    database_stopped,
    container_removed_by_hand,
    clock_of_the_worker_off,
)
# Needs a file system of its own for the runs, which only root can mount.
WITH_OWN_DISK: tuple[Fault, ...] = (disk_for_runs_full,)
