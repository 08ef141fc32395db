"""`python -m tests.bench [docker|process]`: start a panel, measure, print the table the README quotes."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.bench import claim, idle, logs, pages, schedules, throughput, trigger
from tests.bench.figures import Figure
from tests.panel import ROOT, Panel, panel

HEADER = "| what | measured | goal | reached |\n|---|---|---|---|"


def measure(started: Panel) -> list[Figure]:
    """Every figure of the list; one that cannot be taken is a row that says why, and counts as not reached."""
    steps: list[tuple[str, Callable[[Panel], Any]]] = [
        ("idle", idle.idle),
        ("first line", trigger.first_line),
        ("throughput", throughput.throughput),
        ("takeover", throughput.takeover),
        ("claim", claim.claim_times),
        ("schedules", schedules.schedule_times),
        ("bulk log", logs.bulk_log),
        ("live latency", logs.live_latency),
        ("items", logs.item_rate),
        ("agent load", logs.agent_load),
        ("single hop", pages.single_hop),
        ("pages", lambda found: (pages.fill(found), pages.page_times(found))[1]),
    ]
    wanted = set(sys.argv[2:])
    figures: list[Figure] = []
    for name, step in steps:
        if wanted and name not in wanted:
            continue
        try:
            found = step(started)
        except Exception as error:  # noqa: BLE001 (one broken measure must not hide the others)
            found = Figure(name, f"not measured: {error}", "", reached=False)
        for figure in found if isinstance(found, list) else [found]:
            print(figure, flush=True)
            figures.append(figure)
    return figures


def main() -> int:
    executor = sys.argv[1] if len(sys.argv) > 1 else "process"
    print(
        f"{executor} executor, {platform.machine()}, Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}\n"
    )
    with panel(executor) as started:
        started.manage("sync_spiders", str(ROOT / "tests" / "bench" / "spiders"))
        print(HEADER, flush=True)
        figures = measure(started)
    return 0 if all(figure.reached for figure in figures) else 1


if __name__ == "__main__":
    raise SystemExit(main())
