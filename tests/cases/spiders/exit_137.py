# Right: failed with exit code 137, NOT "out of memory", NOT "stopped by user".
import sys

sys.exit(137)
