# Prints its environment, arguments and mounts.  Right: no broker or database URL, no SECRET_KEY, no other run's token; the run's own token and secrets show as *** in log view, download and API.
import os, sys

for k, v in sorted(os.environ.items()):
    print(k + "=" + v)
print("argv", sys.argv)
print(open("/proc/self/mountinfo").read())
