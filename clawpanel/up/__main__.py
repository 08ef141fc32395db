"""`python -m clawpanel.up`: what `manage.py up` becomes; with the word `node`, what `deploy/node` becomes."""

from __future__ import annotations

import os
import signal
import sys

from clawpanel.refusal import CannotStart
from clawpanel.up.node import Node
from clawpanel.up.start import Panel

COLOURS = {
    "up": 1,
    "node": 1,
    "web": 36,
    "worker": 32,
    "beat": 35,
    "demo": 33,
    "postgres": 34,
    "valkey": 31,
    "prepare": 1,
}
NAME_WIDTH = 8
COLOURED = sys.stdout.isatty() and "NO_COLOR" not in os.environ


def say(who: str, text: str) -> None:
    label = f"{who:<{NAME_WIDTH}}|"
    if COLOURED:
        label = f"\x1b[{COLOURS.get(who, 0)}m{label}\x1b[0m"
    try:
        sys.stdout.write(f"{label} {text}\n")
        sys.stdout.flush()
    except OSError:
        pass  # the terminal is gone; the panel goes on


def main() -> int:
    # Before the supervisor listens to signals there is nothing to put in order: end like Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        (Node if sys.argv[1:] == ["node"] else Panel)(say).run()
    except CannotStart as refusal:
        sys.stderr.write(f"clawpanel: {refusal}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
