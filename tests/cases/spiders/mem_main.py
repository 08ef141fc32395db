# MB=2048.  Right: failed, reason "out of memory" (exit 137 and OOMKilled true), not just "exit 137".
import os

b = []
for i in range(int(os.environ.get("MB", "2048")) // 8):
    b.append(bytearray(8 << 20))
print("allocated all", flush=True)
