"""Real runs of a table of inputs, and of a backfill, through a whole panel."""

from __future__ import annotations

import csv
import io
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.panel import Panel

OVER = ("succeeded", "failed", "timed_out", "canceled", "lost", "skipped")


def until_over(panel: Panel, address: str, group: int, seconds: float = 180) -> dict[str, Any]:
    deadline = time.monotonic() + seconds
    while True:
        found: dict[str, Any] = next(each for each in panel.get(address)["results"] if each["id"] == group)
        if found["finished_at"]:
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.5)


def runs_of(panel: Panel, job: int) -> list[dict[str, Any]]:
    return sorted(panel.get("runs/", job=job, limit=100)["results"], key=lambda run: run["id"])


def most_at_once(panel: Panel, runs: list[dict[str, Any]]) -> int:
    """From the runs' own events: from the way into the queue to the end."""
    steps = []
    for run in runs:
        for event in panel.get(f"runs/{run['id']}/events/", limit=100)["results"]:
            if event.get("to_state") == "queued":
                steps.append((event["at"], 1))
            elif event.get("to_state") in OVER:
                steps.append((event["at"], -1))
    most = now = 0
    # Of one instant, the end that makes room comes first.
    for _at, step in sorted(steps):
        now += step
        most = max(most, now)
    assert now == 0
    return most


def test_a_table_runs_two_at_a_time_and_its_data_come_as_one(running_panel: Panel) -> None:
    job = running_panel.job("counts", "slow", count=1, per_second=20, items_every=1)
    rows = [{"count": count} for count in (1, 2, 3, 4, 5)]
    made = running_panel.post(f"jobs/{job}/inputs/", {"rows": rows, "concurrency": 2, "name": "counts"})

    ended = until_over(running_panel, f"jobs/{job}/inputs/", made["id"])

    assert ended["progress"]["states"] == {"succeeded": 5}
    runs = runs_of(running_panel, job)
    assert [run["items"] for run in runs] == [1, 2, 3, 4, 5]
    assert most_at_once(running_panel, runs) == 2
    text = running_panel.session.get(f"{running_panel.url}/api/v1/batches/{made['id']}/items.csv", timeout=60).text
    table = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [int(row["input.count"]) for row in table] == [count for count in (1, 2, 3, 4, 5) for _n in range(count)]
    assert {int(row["run"]) for row in table} == {run["id"] for run in runs}


def test_what_fails_in_a_table_is_run_again_by_itself(running_panel: Panel) -> None:
    job = running_panel.job("some fail", "slow", count=1, per_second=20)
    rows = [{"exit_code": 0}, {"exit_code": 3}, {"exit_code": 0}]
    made = running_panel.post(f"jobs/{job}/inputs/", {"rows": rows, "concurrency": 3})
    ended = until_over(running_panel, f"jobs/{job}/inputs/", made["id"])
    assert ended["progress"]["states"] == {"succeeded": 2, "failed": 1}

    again = running_panel.post(f"batches/{made['id']}/again/", {})

    ended = until_over(running_panel, f"jobs/{job}/inputs/", again["id"])
    assert (ended["origin"], ended["progress"]["states"]) == (made["id"], {"failed": 1})


def test_a_backfill_runs_each_time_with_its_own_date(running_panel: Panel) -> None:
    job = running_panel.job("dated", "quotes", max_pages=1, tag="{{ scheduled_for }}")
    schedule = running_panel.post("schedules/", {"job": job, "type": "cron", "cron": "5 0 * * *"})["id"]
    today = datetime.now(UTC).replace(hour=0, minute=5, second=0, microsecond=0)
    first = today - timedelta(days=3)
    body = {"schedule": schedule, "start": first.isoformat(), "end": (first + timedelta(days=2)).isoformat()}
    times = running_panel.post(f"jobs/{job}/backfills/", {**body, "preview": True})["times"]
    assert len(times) == 3

    made = running_panel.post(f"jobs/{job}/backfills/", {**body, "concurrency": 1})

    ended = until_over(running_panel, f"jobs/{job}/backfills/", made["id"])
    assert ended["progress"]["states"] == {"succeeded": 3}
    runs = runs_of(running_panel, job)
    assert most_at_once(running_panel, runs) == 1
    tags = [running_panel.get(f"runs/{run['id']}/")["parameters"]["tag"] for run in runs]
    assert [tag[:10] for tag in tags] == [(first + timedelta(days=n)).date().isoformat() for n in range(3)]
