"""The processes a killed `up` left behind: remembered by id and start time, so that a reused id is never hit."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from pathlib import Path

REMEMBERED = "children.json"
START_TIME_FIELD = 19  # counted after the closing bracket of the name in /proc/<pid>/stat
ZOMBIE = "Z"


def _stat(pid: int) -> list[str]:
    """State and numbers of a process; empty when it is gone (or where there is no /proc)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def start_time(pid: int) -> str:
    """The kernel's start tick of a living process, else empty."""
    fields = _stat(pid)
    return "" if not fields or fields[0] == ZOMBIE else fields[START_TIME_FIELD]


def executable_name(pid: int) -> str:
    try:
        return Path(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0", 1)[0].decode(errors="replace")).name
    except OSError:
        return ""


def stop(pid: int, kind: signal.Signals, seconds: float) -> None:
    """Ask a process that is not our child to end, wait, then kill its group."""
    born = start_time(pid)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, kind)
        deadline = time.monotonic() + seconds
        while start_time(pid) == born != "":
            if time.monotonic() > deadline:
                os.killpg(pid, signal.SIGKILL)
                return
            time.sleep(0.05)


def remember(home: Path, pids: dict[str, int]) -> None:
    """Write down who was started; replaced in one step."""
    draft = home / f".{REMEMBERED}"
    draft.write_text(json.dumps({name: [pid, start_time(pid)] for name, pid in pids.items()}))
    draft.replace(home / REMEMBERED)


def stop_leftovers(home: Path) -> list[str]:
    """Stop what an earlier `up` on this folder left running; returns the names."""
    try:
        known: dict[str, tuple[int, str]] = json.loads((home / REMEMBERED).read_text())
    except (OSError, ValueError):
        return []
    alive = [(name, pid) for name, (pid, born) in known.items() if born and start_time(pid) == born]
    # Servers last: the others still need them to leave in order.
    for name, pid in sorted(alive, key=lambda item: item[0] in {"postgres", "valkey"}):
        stop(pid, signal.SIGINT if name == "postgres" else signal.SIGTERM, seconds=10)
    (home / REMEMBERED).unlink(missing_ok=True)
    return [name for name, _ in alive]
