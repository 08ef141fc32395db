# TARGETS="name host port;..." : which TCP targets answer.  Give it the panel's redis, postgres and web, the bridge gateway, another run's container and a stand-in for the internet.
# Right: only the internet stand-in is OPEN.
import os, socket

for t in os.environ.get("TARGETS", "").split(";"):
    if not t.strip():
        continue
    n, h, p = t.split()
    try:
        socket.create_connection((h, int(p)), timeout=2).close()
        print(n, "OPEN", flush=True)
    except OSError as e:
        print(n, type(e).__name__, e.errno, flush=True)
