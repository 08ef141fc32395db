# On SIGTERM prints 50 more lines and ends 0.  Right: "stopped", and all 50 lines are in the log.
import signal, sys, time


def bye(*a):
    for i in range(50):
        print("flush", i, flush=True)
    sys.exit(0)


signal.signal(signal.SIGTERM, bye)
print("ready", flush=True)
time.sleep(300)
