"""Our clock beside the stock DatabaseScheduler: 10 000 and 50 000 schedules, in turn on the same database."""

from __future__ import annotations

import json
from typing import Any

from tests.bench.figures import Figure
from tests.panel import ROOT, Panel


def schedule_times(panel: Panel) -> list[Figure]:
    """On the panel's own database server, in a database of its own."""
    printed = panel.script(ROOT / "tests" / "bench" / "schedule_times.py")
    return figures(json.loads(printed.splitlines()[-1]))


def figures(found: dict[str, Any]) -> list[Figure]:
    few, many, due = found["few"], found["many"], found["due"]
    last, edit, idle, start, memory = (found[name] for name in ("last", "edit", "idle", "start", "memory"))
    return [
        Figure(
            f"{few:,} schedules, {due:,} due in one minute: last one fired after",
            _beside(last, "s"),
            "2 s",
            last["ours"] < 2,
        ),
        Figure(f"{many:,} schedules: one edited, effect after", _beside(edit, "s"), "1 s", edit["ours"] < 1),
        Figure(
            "the same: the loop stands still for",
            f"{found['blocked']['ours'] * 1000:.0f} ms, stock {found['blocked']['stock'] * 1000:.0f} ms",
            "0.5 s",
            found["blocked"]["ours"] < 0.5,
        ),
        Figure(f"{many:,} schedules idle", _beside(idle, "% of a core"), "1 %", idle["ours"] < 1),
        Figure(f"start with {many:,}", _beside(start, "s"), "1 s", start["ours"] < 1),
        Figure(f"memory with {many:,}", _beside(memory, "MB"), "120 MB", memory["ours"] < 120),
    ]


def _beside(measured: dict[str, float], unit: str) -> str:
    ours, stock = measured["ours"], measured["stock"]
    return (
        f"{ours:.2f} {unit}, stock {stock:.1f} {unit}: 1/{stock / ours:.0f}" if ours else f"0, stock {stock:.1f} {unit}"
    )
