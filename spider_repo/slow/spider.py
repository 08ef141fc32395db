"""Numbered lines and items at a steady rate, for demonstrations and tests."""

import sys
import time

from clawspider import BaseSpider, progress

BATCH_BYTES = 32 * 1024
PROGRESS_SECONDS = 1.0


class SlowSpider(BaseSpider):
    name = "slow"
    version = "1.0.0"
    description = "Prints numbered lines and yields numbered items at a steady rate."

    def __init__(self, params):
        super().__init__(params)
        self.count = int(params.get("count", 30))
        self.per_second = float(params.get("per_second", 2))
        self.items_every = int(params.get("items_every", 5))
        self.line_bytes = int(params.get("line_bytes", 0))
        self.exit_code = int(params.get("exit_code", 0))
        self.batch = []
        self.batch_bytes = 0

    def start_requests(self):
        """Line n is due at start + (n - 1) / rate, so a pause is caught up with and the rate does not drift."""
        start, items, shown = time.monotonic(), 0, 0.0
        for n in range(1, self.count + 1):
            ahead = start + (n - 1) / self.per_second - time.monotonic() if self.per_second else 0
            if ahead > 0:
                self.flush()
                time.sleep(ahead)
            self.say(n)
            if self.items_every and n % self.items_every == 0:
                items += 1
                yield {"n": items}
            if n % 100 == 0 or self.per_second <= 100:
                now = time.monotonic()
                if now - shown >= PROGRESS_SECONDS:
                    shown = now
                    progress(n, self.count)
        self.flush()
        progress(self.count, self.count)
        if self.exit_code:
            raise SystemExit(self.exit_code)

    def say(self, n):
        """Lines that are due together go out in one write: at thousands a second the writes are what costs."""
        line = f"line {n}"
        if len(line) < self.line_bytes - 1:
            line = (line + " ").ljust(self.line_bytes - 1, ".")
        self.batch.append(line)
        self.batch_bytes += len(line) + 1
        if self.batch_bytes >= BATCH_BYTES:
            self.flush()

    def flush(self):
        if self.batch:
            sys.stdout.write("\n".join(self.batch) + "\n")
            sys.stdout.flush()
            self.batch, self.batch_bytes = [], 0

    def on_close(self, reason):
        self.flush()
