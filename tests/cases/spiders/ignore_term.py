# S=120.  Ignores SIGTERM.  Right: after Stop the run ends as "stopped (killed after grace)" within grace + 5 s; it never shows "failed: 137" or "out of memory".
import os, signal, time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
for i in range(int(os.environ.get("S", "120"))):
    print("still here", i, flush=True)
    time.sleep(1)
