# N=2000 children that sleep 20 s.  Right: the run hits its process limit; other runs and the worker do not notice; no process is left after stop.
import os, time

n = 0
try:
    while n < int(os.environ.get("N", "2000")):
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        n += 1
    print("no limit hit", n, flush=True)
except OSError as e:
    print("limit after", n, e, flush=True)
time.sleep(2)
