# MB=1024 DIR=/tmp : fill a directory.  Right: this run fails with "no space"; other runs lose no output; the worker still accepts runs.
import os

p = os.path.join(os.environ.get("DIR", "/tmp"), "fill.bin")
n = 0
try:
    with open(p, "wb") as f:
        for n in range(int(os.environ.get("MB", "1024"))):
            f.write(b"x" * (1 << 20))
            f.flush()
    print("wrote all", n + 1, "MB", flush=True)
except OSError as e:
    print("stopped after", n, "MB", e, flush=True)
    raise SystemExit(1)
finally:
    try:
        os.unlink(p)
    except OSError:
        pass
