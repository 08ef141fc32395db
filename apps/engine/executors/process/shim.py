"""Parent of one attempt: outlives the worker and writes down how the attempt ended.

Started by `ProcessExecutor.start` with FOLDER and READY_FD as arguments. Standard library only, nothing of the panel is
imported, and little of the library: each import is felt at the start of every run. The order comes marshalled by the
same interpreter on standard input. FOLDER belongs to us alone and gets pid.json (once it runs) and end.json (how it
ended): whoever reads them later knows all there is to know.
"""

# ruff: noqa: PTH105, PTH110, PTH118, PTH123 - pathlib would cost half of the start
from __future__ import annotations

import ctypes
import fcntl
import marshal
import os
import resource
import signal
import sys
import time

import proc  # type: ignore[import-not-found]  # beside this file, found by the way the shim is started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_TICK_SECONDS = 0.2
_SHORT_TICK_SECONDS = 0.02  # while memory use grows fast
_FAST_GROWTH = 0.05  # of the limit, between two looks
_KILLED = 128 + signal.SIGKILL
_CANNOT_START = 125
_NICENESS = 5
_OOM_SCORE = "500"
_LEFTOVER_ROUNDS = 50
_LONGEST_KEPT_SECONDS = 600

# Python ignores two of them for itself, which a program started from here would inherit.
_RESET_SIGNALS = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGCHLD,
    signal.SIGPIPE,
    signal.SIGXFSZ,
)

_libc = ctypes.CDLL(None, use_errno=True)


class Shim:
    def __init__(self, folder: str, order: dict[str, Any]) -> None:
        self.folder, self.order = folder, order
        self.main = 0
        self.status: int | None = None
        self.oom = False
        self.victims: dict[int, int] = {}
        self.last_total = 0

    def run(self, ready: int) -> None:
        os.set_inheritable(ready, False)
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        signal.signal(signal.SIGTERM, self.pass_on)
        for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(ignored, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # Blocked, so that it waits for sigtimedwait: an end between reap and sleep is not missed. A request to stop
        # waits until there is somebody to pass it on to, and in the child until it has the command's own handlers.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM})
        self.order["limits"]["other_threads"] = proc.threads_of(self.order["uid"])
        started_at = time.time()
        self.main = os.fork()
        if self.main == 0:
            self.become_spider()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        me = proc.read_stat(os.getpid())
        numbers = f'"pid": {me.pid}, "started": {me.started}, "started_at": {started_at!r}'
        self.write("pid.json", f'{{{numbers}, "space": "{proc.space()}"}}')
        os.write(ready, b"1")
        os.close(ready)
        _ring(self.order["bell"])
        self.watch()
        self.kill_leftovers()
        code = os.waitstatus_to_exitcode(self.status or 0)
        code = 128 - code if code < 0 else code
        oom = "true" if self.oom else "false"
        times = f'"started_at": {started_at!r}, "finished_at": {time.time()!r}'
        self.keep("end.json", f'{{"exit_code": {code}, "oom_killed": {oom}, {times}}}')
        _ring(self.order["bell"])

    def pass_on(self, *_: object) -> None:
        # To the entry script alone, which tells the command: as in a container, and a handler runs once.
        if self.status is None:
            proc.send(self.main, signal.SIGTERM)

    def become_spider(self) -> None:
        """In the child: give up every right and run the command. Never returns."""
        try:
            order = self.order
            os.setpgid(0, 0)
            for number in _RESET_SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, set())
            _set_limits(order["limits"])
            _write_to("/proc/self/oom_score_adj", _OOM_SCORE)
            os.nice(_NICENESS)
            os.umask(0o077)
            if order["uid"] != os.geteuid():
                os.setgroups([])
                os.setresgid(order["gid"], order["gid"], order["gid"])
                os.setresuid(order["uid"], order["uid"], order["uid"])
            _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            os.chdir(order["cwd"])
            os.execve(order["argv"][0], order["argv"], order["env"])  # noqa: S606
        except BaseException as error:  # noqa: BLE001 - whatever it is, the child must say it and end
            _write_to(order["out"], f"The run could not be started: {error}\n")
        finally:
            os._exit(_CANNOT_START)

    def watch(self) -> None:
        """Until the main process has ended: reap what ends, watch memory and number of the tree."""
        tree, fast = proc.Tree(os.getpid()), False
        while True:
            signal.sigtimedwait({signal.SIGCHLD}, _SHORT_TICK_SECONDS if fast else _TICK_SECONDS)
            self.reap()
            if self.status is not None:
                return
            found = tree.look()
            self.check_count(found)
            fast = self.check_memory(found)

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.main:
                self.status = status

    def check_count(self, tree: list[Any]) -> None:
        """The kernel does not limit the processes of root: where we could not change the user, the newest go."""
        extra = sorted(tree, key=lambda stat: stat.started)[self.order["limits"]["pids"] :]
        for stat in extra:
            proc.send(stat.pid, signal.SIGKILL)

    def check_memory(self, tree: list[Any]) -> bool:
        """Whether use grows fast; over the limit the largest process is killed, as the kernel does in a container."""
        limit = self.order["limits"]["memory_bytes"]
        total = sum(stat.rss_bytes for stat in tree)
        fast = bool(total - self.last_total > limit * _FAST_GROWTH)
        self.last_total = total
        if total <= limit:
            return fast
        if any(self.victims.get(stat.pid) == stat.started for stat in tree):
            return fast  # a victim that is still there gives its memory back in a moment
        # Pages shared after a fork count for each process: ask for the exact shares before somebody is killed for it.
        exact = {stat.pid: proc.proportional_bytes(stat) for stat in tree}
        if sum(exact.values()) <= limit:
            return fast
        victim = max(tree, key=lambda stat: exact[stat.pid])
        if proc.send(victim.pid, signal.SIGKILL):
            self.victims[victim.pid] = victim.started
            self.oom = True
        return True

    def kill_leftovers(self) -> None:
        """What the command left behind: as our orphans they are all below us."""
        for _ in range(_LEFTOVER_ROUNDS):
            if proc.signal_tree(os.getpid(), signal.SIGKILL) == 0:
                return
            self.reap()
            time.sleep(0.01)

    def keep(self, name: str, text: str) -> None:
        """How the attempt ended is known to nobody else: on a full disk it waits for a while until there is room."""
        for _ in range(_LONGEST_KEPT_SECONDS):
            try:
                self.write(name, text)
            except OSError:
                time.sleep(1)
            else:
                return

    def write(self, name: str, text: str) -> None:
        """Whole or not at all."""
        path = os.path.join(self.folder, name)
        with open(path + ".new", "w") as file:
            file.write(text)
        os.replace(path + ".new", path)


def _write_to(path: str, text: str) -> None:
    try:
        with open(path, "a") as file:
            file.write(text)
    except OSError:
        pass


def _ring(bell: str) -> None:
    """Whoever watches this file learns that something has happened."""
    _write_to(bell, "")


def _set_limits(limits: dict[str, Any]) -> None:
    memory = int(limits["memory_bytes"])
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, limits["output_bytes"])
    _limit(resource.RLIMIT_NOFILE, limits["open_files"])
    # The tree's real use is watched every 0.2 s; this stops a program that takes gigabytes between two looks.
    _limit(resource.RLIMIT_DATA, 2 * memory + (1 << 30))
    if limits["cpu_seconds"]:
        _limit(resource.RLIMIT_CPU, limits["cpu_seconds"])
    # The kernel counts all processes of the user, so those of other runs are added to what this one may have.
    _limit(resource.RLIMIT_NPROC, limits["other_threads"] + limits["pids"])


def _limit(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    try:
        resource.setrlimit(which, (value, value))
    except (OSError, ValueError):
        return


def main() -> None:
    folder, ready = sys.argv[1], int(sys.argv[2])
    order = marshal.load(sys.stdin.buffer)  # noqa: S302 - from our parent alone
    if os.fork():  # our caller waits for this one only: the shim itself belongs to nobody
        os._exit(0)
    os.setsid()
    lock = os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return  # another worker starts it
    if any(os.path.exists(os.path.join(folder, name)) for name in ("pid.json", "end.json")):
        return  # it was started before: never twice
    Shim(folder, order).run(ready)
