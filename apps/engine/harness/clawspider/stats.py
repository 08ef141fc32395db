"""Counters of a crawl, and the thread that reports them while the spider works."""

from __future__ import annotations

import threading
import time

from clawspider import records

REPORT_SECONDS = 5.0
FLUSH_SECONDS = 1.0
_BATCH_BYTES = 64 * 1024


class Stats:
    """Named numbers that several threads add to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, float] = {}

    def add(self, name: str, amount: float = 1) -> None:
        with self._lock:
            self._values[name] = self._values.get(name, 0) + amount

    def get(self, name: str) -> float:
        return self._values.get(name, 0)

    def snapshot(self) -> dict[str, float]:
        with self._lock:
            return dict(self._values)


class Reporter:
    """Writes a `request` record for each request, several in one write, and a `stat` record every 5 s.

    On a laptop it stays silent: only what the spider itself writes goes to stdout.
    """

    def __init__(self, stats: Stats) -> None:
        self._stats = stats
        self._lock = threading.Lock()
        self._lines = b""
        self._last: dict[str, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._report, name="reporter", daemon=True)

    def start(self) -> None:
        if not records.on_laptop():
            self._thread.start()

    def request(self, *, url: str, method: str, status: int | None, ms: int, size: int, error: str = "") -> None:
        record = {"url": url[:2000], "method": method, "status": status, "ms": ms, "bytes": size}
        if error:
            record["error"] = error[:500]
        self._stats.add("requests")
        self._stats.add("bytes", size)
        self._stats.add(f"status_{status // 100}xx" if status else "network_errors")
        if records.on_laptop():
            return
        with self._lock:
            self._lines += records.encode("request", record)
            full = len(self._lines) >= _BATCH_BYTES
        if full:
            self.flush()

    def flush(self) -> None:
        with self._lock:
            lines, self._lines = self._lines, b""
        if lines:
            records.write_lines(lines)

    def stop(self) -> None:
        """Write what is left and the last figures."""
        self._ended.set()
        if records.on_laptop():
            return
        self._thread.join(timeout=2)
        self.flush()
        self._write_stats()

    def _report(self) -> None:
        due = time.monotonic() + REPORT_SECONDS
        while not self._ended.wait(FLUSH_SECONDS):
            self.flush()
            if time.monotonic() >= due:
                due += REPORT_SECONDS
                self._write_stats()

    def _write_stats(self) -> None:
        values = self._stats.snapshot()
        if values and values != self._last:
            records.write("stat", values)
            self._last = values
