# N=50000 items through whatever way the product offers (here: one JSON object per line on stdout; adapt the emit line).  Right: exactly N, no gap, no double, also across a restart of worker, broker or dockerd.
import json, os, time

n = int(os.environ.get("N", "50000"))
for i in range(n):
    print(json.dumps({"n": i, "title": "t%d" % i, "pad": "x" * 150}), flush=(i % 100 == 99))
    if i % 1000 == 999:
        time.sleep(float(os.environ.get("PAUSE", "0.05")))
