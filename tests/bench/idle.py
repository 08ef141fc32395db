"""What the whole stack costs when nothing runs."""

from __future__ import annotations

import time
from pathlib import Path

import psutil

from tests.bench.figures import Figure
from tests.panel import Panel

SETTLE_SECONDS = 15  # checks at the start are not what an idle panel costs


def _pss_bytes(pid: int) -> int:
    """Proportional set size: shared pages are counted once over all processes."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def _cpu_seconds(process: psutil.Process) -> float | None:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return None  # a passing helper of the database
    return float(times.user + times.system)


def idle(panel: Panel, seconds: int = 30) -> list[Figure]:
    time.sleep(SETTLE_SECONDS)
    processes = panel.processes()
    before, clock = [_cpu_seconds(process) for process in processes], time.monotonic()
    time.sleep(seconds)
    after, elapsed = [_cpu_seconds(process) for process in processes], time.monotonic() - clock
    used = sum(b - a for a, b in zip(before, after, strict=True) if a is not None and b is not None)
    share = 100 * used / elapsed
    megabytes = sum(_pss_bytes(process.pid) for process in processes if process.is_running()) / 1e6
    return [
        Figure("idle stack, memory (PSS)", f"{megabytes:.0f} MB", "450 MB", megabytes < 450),
        Figure("idle stack, processor", f"{share:.1f} % of a core", "2 %", share < 2),
    ]
