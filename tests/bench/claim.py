"""What it costs to take a run from the queue, and that this does not grow with the queue."""

from __future__ import annotations

import json
import statistics

from tests.bench.figures import Figure, quantile
from tests.panel import ROOT, Panel


def claim_times(panel: Panel) -> list[Figure]:
    """On the panel's own database server, with its settings; a bare claim is one UPDATE without any limit."""
    printed = panel.script(ROOT / "tests" / "bench" / "claim_times.py")
    found: dict[str, list[float]] = json.loads(printed.splitlines()[-1])
    p95 = {name: quantile(times, 0.95) for name, times in found.items()}
    short, long = (statistics.median(found[name]) for name in ("claim 1000", "claim 50000"))
    value = f"{p95['claim 10000']:.1f} ms, bare {p95['bare 10000']:.1f} ms"
    growth = f"{short:.1f} ms, {long:.1f} ms: x {long / short:.2f}"
    return [
        Figure("claim of one run with 10 000 queued: p95", value, "20 ms", p95["claim 10000"] < 20),
        Figure(
            "the same behind 10 000 runs of a full pool and a busy job: p95",
            f"{p95['claim blocked']:.1f} ms",
            "20 ms",
            p95["claim blocked"] < 20,
        ),
        Figure("the same with 1 000 and with 50 000 queued: p50", growth, "x 1.5", long < 1.5 * short),
    ]
