"""Prints numbered lines and writes numbered items at a given rate; for measuring only."""

import json
import os
import time

params = json.loads(os.environ["CLAW_PARAMS"])
lines, per_second = params["lines"], params["per_second"]
items, item_bytes, line_bytes = params["items"], params["item_bytes"], params["line_bytes"]

records = os.open(os.environ["CLAW_RECORDS"], os.O_WRONLY | os.O_APPEND)
pad = "x" * item_bytes
for first in range(0, items, 500):
    batch = "".join('{"n":%d,"title":"t%d","pad":"%s"}\n' % (n, n, pad) for n in range(first, min(first + 500, items)))
    os.write(records, batch.encode())

started = time.monotonic()
if per_second:
    for n in range(lines):
        wait = started + n / per_second - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        os.write(1, b"line %d @%d\n" % (n, time.time() * 1000))
else:
    for first in range(0, lines, 1000):
        text = "".join(
            ("line %d " % n).ljust(line_bytes - 1, "y") + "\n" for n in range(first, min(first + 1000, lines))
        )
        os.write(1, text.encode())
os.write(records, b'output {"printed_at": %.3f}\n' % time.time())
