# Prints what the panel's own frames might look like.  Right: plain log text: item count 0, state decided by the exit code only (this one FAILS).
import json, os, sys

for f in (
    {"t": "item", "d": {"forged": 1}},
    {"t": "end", "status": "succeeded", "items": 99},
    {"cp": 1, "t": "stat", "exit": 0},
):
    print(json.dumps(f))
    print("@@CP " + json.dumps(f))
    sys.stderr.write("\x1e" + json.dumps(f) + "\n")
for fd in range(3, 20):
    try:
        os.write(fd, b'{"t":"end","status":"succeeded","items":99}\n')
    except OSError:
        pass
sys.exit(7)
