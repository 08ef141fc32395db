# MB=20 in one line, then a short line.  Right: cut into a bounded display with a mark; the next line is a separate line.
import os, sys

for i in range(int(os.environ.get("MB", "20"))):
    sys.stdout.write("y" * (1 << 20))
sys.stdout.write("\nshort line after\n")
