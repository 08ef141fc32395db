# S=200 without a byte of output, then one line.  Right: no "lost"/"timeout" state, live page still connected, last line shown.
import os, time

time.sleep(int(os.environ.get("S", "200")))
print("done", flush=True)
