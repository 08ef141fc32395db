"""One scheduler in a process of its own, as beat drives it; prints what was measured of it as JSON.

schedule_beat.py ours|stock last DUE AT      sends or fires what is due at that time (seconds since 1970)
schedule_beat.py ours|stock rest ID SECONDS  start, memory, idle, and the edit of one periodic task
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "clawpanel.settings")

import django

django.setup()

from celery.beat import Scheduler  # noqa: E402 (after set-up)
from django.conf import settings  # noqa: E402
from django.db import connection  # noqa: E402
from django_celery_beat.models import IntervalSchedule, PeriodicTask  # noqa: E402
from django_celery_beat.schedulers import DatabaseScheduler  # noqa: E402

from apps.core import valkey  # noqa: E402
from apps.jobs import beat  # noqa: E402
from apps.jobs.models import Firing, Schedule  # noqa: E402
from clawpanel.celery import app  # noqa: E402

# What the stock scheduler sends goes where no worker takes it.
QUEUE = "bench-schedules"
PATIENCE_SECONDS = 180
EDIT_PATIENCE_SECONDS = 60


class Loop(threading.Thread):
    """Beat's own loop, without its signals."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(daemon=True)
        self.scheduler = scheduler
        self.over = threading.Event()
        self.longest = 0.0

    def run(self) -> None:
        while not self.over.is_set():
            started = time.perf_counter()
            interval = self.scheduler.tick()
            self.longest = max(self.longest, time.perf_counter() - started)
            if interval > 0:
                self.over.wait(interval)
        connection.close()


def scheduler_of(side: str) -> Scheduler:
    return (beat.ClawScheduler if side == "ours" else DatabaseScheduler)(app=app)


def until(what: Callable[[], bool], seconds: float) -> float:
    """When it became true, by the clock of the wall."""
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            return float("inf")
        time.sleep(0.05)
    return time.time()


def last(side: str, due: int, at: float) -> dict[str, float]:
    broker = valkey.client(settings.REDIS_URL)
    broker.delete(QUEUE)
    loop = Loop(scheduler_of(side))
    loop.start()
    time.sleep(max(0.0, at - time.time()))
    done = Firing.objects.filter if side == "ours" else None
    reached = until(lambda: (done().count() if done else broker.llen(QUEUE)) >= due, PATIENCE_SECONDS)
    broker.delete(QUEUE)
    return {"last": reached - at}


def rest(side: str, task_id: int, seconds: float) -> dict[str, float]:
    looks: list[float] = []
    look = beat.look

    def timed_look(**given: object) -> object:
        started = time.perf_counter()
        found = look(**given)
        looks.append(time.perf_counter() - started)
        return found

    beat.look = timed_look
    started = time.perf_counter()
    scheduler = scheduler_of(side)
    scheduler.tick()
    if side == "ours":
        until(lambda: bool(looks), 30)
    found = {"start": time.perf_counter() - started}
    loop = Loop(scheduler)
    loop.start()
    time.sleep(2)
    found["memory"] = _pss_mb()
    cpu, wall = time.process_time(), time.monotonic()
    time.sleep(seconds)
    found["idle"] = 100 * (time.process_time() - cpu) / (time.monotonic() - wall)
    loop.longest = 0.0
    looks.clear()
    task = PeriodicTask.objects.get(pk=task_id)
    task.crontab, task.interval = None, IntervalSchedule.objects.get_or_create(every=7, period="days")[0]
    task.save()
    edited = time.time()

    def is_known() -> bool:
        if side == "ours":
            return Schedule.objects.filter(task=task_id, stale=False, every_seconds=7 * 86400).exists()
        entry = (scheduler._schedule or {}).get(task.name)
        return entry is not None and entry.model.interval_id == task.interval_id

    found["edit"] = until(is_known, EDIT_PATIENCE_SECONDS) - edited
    until(lambda: loop.longest > 0, EDIT_PATIENCE_SECONDS)
    found["blocked"] = max([loop.longest, *looks])
    return found


def _pss_mb() -> float:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / 1e6


def main() -> None:
    side, what, number, value = sys.argv[1:5]
    found = last(side, int(number), float(value)) if what == "last" else rest(side, int(number), float(value))
    print(json.dumps(found), flush=True)
    # The loop may be in the middle of a tick of seconds.
    os._exit(0)


if __name__ == "__main__":
    main()
