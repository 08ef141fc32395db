"""Reads /proc: who descends from whom, and what they use. Standard library only, the shim imports it."""

# ruff: noqa: PTH116, PTH123, PTH208 - pathlib would cost the shim half of its start, and these run several times a second
from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:  # imported for nothing else, and slow to import
    from collections.abc import Iterator

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
_KIB = 1024


class Stat:
    """`started` is in clock ticks after boot: with the pid it names a process for ever. `children_ticks` are those of
    children that were waited for, and part of `cpu_ticks`.
    """

    __slots__ = ("children_ticks", "cpu_ticks", "parent", "pid", "rss_bytes", "session", "started", "state")

    def __init__(self, pid: int, fields: list[bytes]) -> None:
        self.pid = pid
        self.state = fields[0].decode()
        self.parent = int(fields[1])
        self.session = int(fields[3])
        self.children_ticks = int(fields[13]) + int(fields[14])
        self.cpu_ticks = int(fields[11]) + int(fields[12]) + self.children_ticks
        self.started = int(fields[19])
        self.rss_bytes = int(fields[21]) * PAGE


def read_stat(pid: int) -> Stat | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The name may hold spaces and brackets: fields count from the last bracket.
    return Stat(pid, text[text.rfind(b")") + 2 :].split())


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


class Tree:
    """The descendants of a process, looked at often: only processes new since the last look are read to find them."""

    _ALL_EVERY_LOOKS = 100  # a pid may have been given to a new process between two looks

    def __init__(self, root: int) -> None:
        self.root = root
        self._looks = 0
        self._seen: set[str] = set()
        self._members: set[int] = set()

    def look(self) -> list[Stat]:
        names = set(filter(str.isdecimal, os.listdir("/proc")))
        if self._looks % self._ALL_EVERY_LOOKS == 0:
            self._seen, self._members = set(), set()
        self._looks += 1
        members = {stat.pid: stat for stat in map(read_stat, self._members) if stat is not None}
        # In the order of age, so that most parents come before their children.
        new = [stat for stat in map(read_stat, sorted(map(int, names - self._seen))) if stat is not None]
        found = True
        while found:
            found = False
            for stat in new:
                if stat.pid not in members and (stat.parent in members or stat.parent == self.root):
                    members[stat.pid] = stat
                    found = True
        self._seen, self._members = names, set(members)
        return [stat for stat in members.values() if stat.state not in "ZX"]


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


def send(pid: int, number: int) -> bool:
    """Whether the process was there to get the signal."""
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


def signal_tree(root: int, number: int, *, rounds: int = 1) -> int:
    """Send a signal to all descendants; a fork while we look is caught by a further round. Returns how many last."""
    count = 0
    for _ in range(rounds):
        found = descendants(root)
        count = len(found)
        for stat in found:
            send(stat.pid, number)
        if not found:
            break
    return count


def space() -> str:
    """Names the processes among which a pid means something: this boot and this pid namespace."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
        return f"{boot}.{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def kill_session(leader: int, started: int, where: str) -> None:
    """What is left of an attempt whose shim was killed: its processes are no longer below anybody we know.

    After a restart of the machine, or of our container, the number may be the session of a stranger.
    """
    found = read_stat(leader)
    if where != space() or (found is not None and found.started != started):
        return
    for stat in list(all_stats()):
        if stat.session == leader:
            send(stat.pid, signal.SIGKILL)


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
