# 1000 items, then a hard crash.  Right: failed AND the 1000 items are kept and marked as coming from a failed run.
import json, os

for i in range(1000):
    print(json.dumps({"n": i}), flush=True)
os.abort()
