# A child is killed for memory, the spider itself ends with 0.  Right: succeeded WITH a visible out-of-memory warning (State.OOMKilled is true, exit 0).
import os, subprocess, sys

p = subprocess.run([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "mem_main.py")])
print("child rc", p.returncode, flush=True)
