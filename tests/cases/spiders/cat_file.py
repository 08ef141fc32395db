# FILE=/path : copy a file to stdout byte for byte, in small writes.  Right: log view and download as logs/README.txt says.
import os, time

with open(os.environ.get("FILE", "/dev/null"), "rb") as f:
    while True:
        b = f.read(4096)
        if not b:
            break
        while b:
            b = b[os.write(1, b) :]
        time.sleep(0.01)
