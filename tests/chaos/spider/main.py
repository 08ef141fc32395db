"""Numbered lines and items at a steady rate; fails in its first attempts when it is told to."""

import json
import os
import sys
import time

params = json.loads(os.environ["CLAW_PARAMS"])
attempt = int(os.environ["CLAW_ATTEMPT"])
count, rate, every = params["count"], params["per_second"], params["items_every"]
records = os.open(os.environ["CLAW_RECORDS"], os.O_WRONLY | os.O_APPEND)
start = time.monotonic()
for number in range(1, count + 1):
    print(f"line {number}", flush=True)
    if every and number % every == 0:
        os.write(records, json.dumps({"n": number // every}).encode() + b"\n")
    if rate:
        time.sleep(max(0, start + number / rate - time.monotonic()))
failing = params["fail_attempts"]
sys.exit(params["code"] if not failing or attempt <= failing else 0)
