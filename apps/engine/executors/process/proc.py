"""Reads /proc: who descends from whom, and what they use. Standard library only, the shim imports it."""

# ruff: noqa: PTH116, PTH123, PTH208 - pathlib would cost the shim half of its start, and these run several times a second
from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
_KIB = 1024


class Stat(NamedTuple):
    pid: int
    state: str
    parent: int
    session: int
    cpu_ticks: int  # with those of children that were waited for
    children_ticks: int
    started: int  # clock ticks after boot: with the pid it names a process for ever
    rss_bytes: int


def read_stat(pid: int) -> Stat | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The name may hold spaces and brackets: fields count from the last bracket.
    fields = text[text.rfind(b")") + 2 :].split()
    own, children = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
    return Stat(
        pid=pid,
        state=fields[0].decode(),
        parent=int(fields[1]),
        session=int(fields[3]),
        cpu_ticks=own + children,
        children_ticks=children,
        started=int(fields[19]),
        rss_bytes=int(fields[21]) * PAGE,
    )


def is_alive(pid: int, started: int) -> bool:
    """Whether this very process lives; a zombie does not."""
    stat = read_stat(pid)
    return stat is not None and stat.started == started and stat.state not in "ZX"


def all_stats() -> Iterator[Stat]:
    for name in os.listdir("/proc"):
        if name.isdecimal():
            stat = read_stat(int(name))
            if stat is not None:
                yield stat


def descendants(root: int) -> list[Stat]:
    """All below `root`, without itself and without zombies."""
    children: dict[int, list[Stat]] = {}
    for stat in all_stats():
        children.setdefault(stat.parent, []).append(stat)
    found: list[Stat] = []
    waiting = [root]
    while waiting:
        for stat in children.get(waiting.pop(), ()):
            waiting.append(stat.pid)
            if stat.state not in "ZX":
                found.append(stat)
    return found


def proportional_bytes(stat: Stat) -> int:
    """Memory with shared pages divided among those who share them: exact, but slow to ask for."""
    try:
        with open(f"/proc/{stat.pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * _KIB
    except (PermissionError, FileNotFoundError):
        return stat.rss_bytes if read_stat(stat.pid) else 0
    except OSError:
        pass
    return 0  # it is just ending


def signal_tree(root: int, number: int, *, rounds: int = 1) -> int:
    """Send a signal to all descendants; a fork while we look is caught by a further round. Returns how many last."""
    count = 0
    for _ in range(rounds):
        found = descendants(root)
        count = len(found)
        for stat in found:
            try:
                os.kill(stat.pid, number)
            except OSError:
                continue
        if not found:
            break
    return count


def kill_session(session: int) -> None:
    """What is left of an attempt whose shim was killed: its processes are no longer below anybody we know."""
    for stat in list(all_stats()):
        if stat.session == session:
            with contextlib.suppress(OSError):
                os.kill(stat.pid, signal.SIGKILL)


def threads_of(uid: int) -> int:
    """How many processes and threads a user has: what RLIMIT_NPROC counts."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                if os.stat(f"/proc/{name}").st_uid == uid:
                    count += len(os.listdir(f"/proc/{name}/task"))
            except OSError:
                continue
    return count
