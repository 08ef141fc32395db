# The main process ends at once; a detached child goes on for 60 s and prints.  Right: the run ends when the main process ends, nothing of it is left on the host, no line appears after the end state.
import os, sys, time

if os.fork() == 0:
    os.setsid()
    for i in range(60):
        print("ghost", i, flush=True)
        time.sleep(1)
    os._exit(0)
print("main done", flush=True)
