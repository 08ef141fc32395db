"""Prints, as JSON, what schedules cost our clock and the stock DatabaseScheduler, both on the very same rows.

In a database of its own on the panel's server. `python tests/bench/schedule_times.py FEW MANY DUE` makes it smaller.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "clawpanel.settings")

import django

django.setup()

from django.db import connection  # noqa: E402 (after set-up)

from apps.jobs.models import Firing, Job, Schedule  # noqa: E402
from apps.runs.models import Run  # noqa: E402
from tests.bench.schedule_beat import QUEUE  # noqa: E402
from tests.many_schedules import cron, many_jobs, many_schedules  # noqa: E402

SIDES = ("ours", "stock")
IDLE_SECONDS = 20
# Time to come up with so many schedules.
AHEAD = timedelta(seconds=20)
ROOT = Path(__file__).resolve().parents[2]


def far_away(number: int, now: datetime) -> str:
    """In half a year, and at an hour that the stock scheduler always reads."""
    return f"{number % 60} 4 {number % 28 + 1} {(now.month + 5) % 12 + 1} *"


def child(*arguments: str) -> dict[str, float]:
    parts = urlsplit(os.environ["DATABASE_URL"])
    url = urlunsplit(parts._replace(path=f"/{connection.settings_dict['NAME']}"))
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("schedule_beat.py")), *arguments],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": url, "PYTHONPATH": str(ROOT), "MALLOC_ARENA_MAX": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def queue_apart() -> None:
    """Away from the panel's workers."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_celery_beat_periodictask SET queue = %s WHERE queue IS NULL", [QUEUE])
        cursor.execute("ANALYZE")


def due_minute() -> datetime:
    soon = datetime.now(UTC) + AHEAD
    return soon.replace(second=0, microsecond=0) + timedelta(minutes=1)


def last_one(side: str, due: list[Schedule]) -> float:
    """All of them at one minute, which is another for each side."""
    minute = due_minute()
    crontab = due[0].task.crontab
    type(crontab).objects.filter(pk=crontab.pk).update(
        minute=str(minute.minute), hour="*", day_of_month="*", month_of_year="*"
    )
    Schedule.objects.filter(pk__in=[each.pk for each in due]).update(
        expression=f"{minute.minute} * * * *", next_slot_at=minute, next_fire_at=minute, stale=False
    )
    found = child(side, "last", str(len(due)), str(minute.timestamp()))["last"]
    Firing.objects.all().delete()
    Run.objects.all().delete()
    return found


def measure(few: int, many: int, number_due: int) -> dict[str, object]:
    now = datetime.now(UTC)
    jobs = many_jobs(number_due, now=now, overlap="skip")
    due = many_schedules(jobs, cron(lambda _number: "0 0 1 1 *"), now=now)
    _more(jobs, few - number_due, now)
    queue_apart()
    found: dict[str, object] = {"few": few, "many": many, "due": number_due}
    found["last"] = {side: last_one(side, due) for side in SIDES}
    _far_too(due, now)
    _more(jobs, many - few, now)
    queue_apart()
    tasks = Schedule.objects.order_by("pk").values_list("task_id", flat=True)[:2]
    rest = {side: child(side, "rest", str(task), str(IDLE_SECONDS)) for side, task in zip(SIDES, tasks, strict=True)}
    for name in ("edit", "blocked", "idle", "start", "memory"):
        found[name] = {side: rest[side][name] for side in SIDES}
    return found


def _more(jobs: list[Job], number: int, now: datetime) -> None:
    several = [jobs[each % len(jobs)] for each in range(max(0, number))]
    many_schedules(several, cron(lambda each: far_away(each, now)), now=now)


def _far_too(due: list[Schedule], now: datetime) -> None:
    crontab = due[0].task.crontab
    crontab.minute, crontab.hour, crontab.day_of_month, crontab.month_of_year, _star = far_away(0, now).split()
    crontab.save()
    Schedule.objects.update(stale=False)
    Schedule.objects.filter(pk__in=[each.pk for each in due]).update(next_slot_at=None, next_fire_at=None)


def main() -> None:
    started = time.monotonic()
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        few, many, due = (int(each) for each in sys.argv[1:4]) if len(sys.argv) > 3 else (10_000, 50_000, 1_000)
        found = measure(few, many, due)
        print(json.dumps({**found, "seconds": time.monotonic() - started}))
    finally:
        connection.creation.destroy_test_db(connection.settings_dict["NAME"], verbosity=0)


if __name__ == "__main__":
    main()
