# Progress bar without newlines, 30 s.  Right: live view shows progress at least every few seconds, memory does not grow, one line stored at the end.
import sys, time

for i in range(301):
    sys.stdout.write("\rprogress %d/300" % i)
    sys.stdout.flush()
    time.sleep(0.1)
