"""Places where a test lets a worker die: "between the commit and the call" is hit in no other way.

`CLAW_CRASH_AT=name` ends the process the first time it comes by that place, `name:3` the third time. With
`CLAW_CRASH_BY=freeze` it is stopped there instead (SIGSTOP), for as long as the test wants.
"""

from __future__ import annotations

import os
import signal

KILLED = 137
POINTS = (
    "claimed",
    "adopted",
    "before-create",
    "created",
    "before-start",
    "started",
    "marked-running",
    "before-store",
    "storing",
    "stored",
    "exit-seen",
    "end-stored",
    "removed",
    "before-terminate",
    "terminated",
    "before-kill",
    "frozen",
    "paused",
    "thawed",
)

# Not a setting: nobody but a test gives it.
_wanted, _, _times = os.environ.get("CLAW_CRASH_AT", "").partition(":")  # noqa: TID251
_left = int(_times or 1)
_freezes = os.environ.get("CLAW_CRASH_BY") == "freeze"  # noqa: TID251


def crash_point(name: str) -> None:
    """Nothing, unless a test has asked for the end of this process here."""
    if name == _wanted:
        _die()


def _die() -> None:
    global _left  # noqa: PLW0603 - of this process, which ends by it
    _left -= 1
    if _left > 0:
        return
    if not _freezes:
        os._exit(KILLED)
    if _left == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
