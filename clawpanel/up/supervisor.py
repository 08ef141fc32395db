"""Keeps the panel's processes alive on one machine: prefixed logs, restarts with backoff, an orderly end."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Protocol

from clawpanel.refusal import CannotStart
from clawpanel.up import processes

LONGEST_PAUSE_SECONDS = 30.0
STEADY_AFTER_SECONDS = 60.0
DEATHS_BEFORE_READY = 4
SERVER_AGAIN_SECONDS = 5.0
LINE_LIMIT = 16 * 1024
READ_BYTES = 64 * 1024


class Server(Protocol):
    """PostgreSQL or Valkey of our own."""

    name: str
    process: subprocess.Popen[bytes] | None

    def start(self) -> None: ...

    def stop(self) -> None: ...


@dataclass(frozen=True)
class Service:
    """A process of the panel."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    stop_seconds: float = 10.0


@dataclass
class _Child:
    service: Service
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    deaths: int = 0
    start_at: float = 0.0
    buffer: bytearray = field(default_factory=bytearray)
    last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=12))

    @property
    def name(self) -> str:
        return self.service.name


class Supervisor:
    """One thread. `pump()` moves logs and restarts the dead; whoever waits for something calls it in a loop."""

    def __init__(self, *, home: Path, say: Callable[[str, str], None]) -> None:
        self._home = home
        self._servers: list[Server] = []
        self._servers_at = 0.0
        self._say = say
        self._children: list[_Child] = []
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._signals = 0
        self.ready = False

    @property
    def stopping(self) -> bool:
        return self._signals > 0

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """SIGINT, SIGTERM and SIGHUP ask for an end; a child's death wakes the loop."""
        kinds = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
        before = [signal.signal(kind, self._on_signal) for kind in kinds]
        wakeup = signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup)
            for kind, handler in zip(kinds, before, strict=True):
                signal.signal(kind, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if number != signal.SIGCHLD:
            self._signals += 1

    def add_server(self, server: Server) -> None:
        """Start it; it is kept alive, and stopped after everything that was added with `add`."""
        self._servers.append(server)
        server.start()
        self._remember()

    def add(self, service: Service) -> None:
        child = _Child(service)
        self._children.append(child)
        self._start(child)

    def run_once(self, service: Service) -> int:
        """Run something that ends, show its lines, return its code. A stop asked meanwhile ends it."""
        child = _Child(service)
        self._start(child, remember=False)
        process = child.process
        asked = False
        while process is not None and process.poll() is None:
            self.pump(0.2)
            if self.stopping and not asked:
                asked = True
                process.terminate()
        self._drain(child)
        return process.returncode if process is not None else 1

    def run_until_stopped(self) -> None:
        while not self.stopping:
            self.pump(None)

    def pump(self, seconds: float | None) -> None:
        """Move what there is to move for at most `seconds`; None waits for the next thing that happens."""
        pauses = [at - time.monotonic() for at in (self._servers_at, *(c.start_at for c in self._children)) if at]
        timeout = min([*pauses, *([] if seconds is None else [seconds])], default=None)
        for key, _ in self._selector.select(None if timeout is None else max(timeout, 0)):
            if key.data is None:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake_read, READ_BYTES)
            else:
                self._read(key.data)
        if not self.stopping:
            self._tend()

    def _tend(self) -> None:
        if time.monotonic() >= self._servers_at:
            self._servers_at = 0.0
            for server in self._servers:
                self._revive(server)
        for child in self._children:
            if child.process is not None and child.process.poll() is not None:
                self._bury(child)
            if child.process is None and time.monotonic() >= child.start_at:
                self._start(child)

    def _revive(self, server: Server) -> None:
        """One that does not come back (a full disk, a session of old that still holds its memory) is tried again."""
        if server.process is None or server.process.poll() is None:
            return
        self._say(server.name, f"ended with code {server.process.returncode}, starting it again")
        try:
            server.start()
        except (CannotStart, OSError) as error:
            if not self.ready:
                raise
            self._servers_at = time.monotonic() + SERVER_AGAIN_SECONDS
            for line in f"{error}\ntrying again in {SERVER_AGAIN_SECONDS:g} s".splitlines():
                self._say(server.name, line)
        self._remember()

    def _start(self, child: _Child, *, remember: bool = True) -> None:
        child.start_at = 0.0
        child.process = subprocess.Popen(
            list(child.service.command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # A session of its own: Ctrl-C in the terminal reaches only us, and we choose the order of the end.
            start_new_session=True,
            env=dict(child.service.env) or None,
            cwd=child.service.cwd,
        )
        child.started = time.monotonic()
        if child.process.stdout is not None:
            os.set_blocking(child.process.stdout.fileno(), False)
            self._selector.register(child.process.stdout, selectors.EVENT_READ, child)
        if remember:
            self._remember()

    def _remember(self) -> None:
        named = [(server.name, server.process) for server in self._servers]
        named += [(child.name, child.process) for child in self._children]
        try:
            processes.remember(self._home, {name: process.pid for name, process in named if process is not None})
        except OSError as error:
            # It serves a start after a crash only: a full disk is no reason to end the panel.
            self._say("up", f"the list of processes could not be written: {error}")

    def _read(self, child: _Child) -> None:
        stream = child.process.stdout if child.process else None
        if stream is None:
            return
        try:
            chunk = os.read(stream.fileno(), READ_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            self._selector.unregister(stream)
            stream.close()
        child.buffer += chunk
        *lines, rest = child.buffer.split(b"\n")
        if not chunk or len(rest) > LINE_LIMIT:
            lines, rest = [*lines, *([rest] if rest else [])], bytearray()
        child.buffer = bytearray(rest)
        for line in lines:
            text = line.decode(errors="replace").rstrip("\r")
            child.last_lines.append(text)
            self._say(child.name, text)

    def _drain(self, child: _Child) -> None:
        """What the dead still had to say. Its grandchildren may hold the pipe open, so this never waits."""
        stream = child.process.stdout if child.process else None
        while stream is not None and not stream.closed and self._readable(stream.fileno()):
            self._read(child)
        if stream is not None and not stream.closed:
            self._selector.unregister(stream)
            stream.close()

    @staticmethod
    def _readable(descriptor: int) -> bool:
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            return bool(selector.select(0))

    def _bury(self, child: _Child) -> None:
        self._drain(child)
        code = child.process.returncode if child.process else None
        child.process = None
        child.deaths = 0 if time.monotonic() - child.started > STEADY_AFTER_SECONDS else child.deaths + 1
        if not self.ready and child.deaths >= DEATHS_BEFORE_READY:
            raise CannotStart(f"{child.name} does not start (code {code}):\n" + "\n".join(child.last_lines))
        pause = min(0.5 * 2 ** min(max(child.deaths - 1, 0), 10), LONGEST_PAUSE_SECONDS)
        child.start_at = time.monotonic() + pause
        self._say(child.name, f"ended with code {code}, starting it again in {pause:g} s")

    def stop(self) -> None:
        """All services at once, then the servers they need. A second signal kills what is left."""
        asked, patience = self._signals, max((c.service.stop_seconds for c in self._children), default=0.0)
        alive = [child for child in self._children if child.process is not None and child.process.poll() is None]
        for child in alive:
            self._signal(child, signal.SIGTERM)
        deadline = time.monotonic() + patience
        self._signals = max(asked, 1)
        while alive and time.monotonic() < deadline and self._signals <= max(asked, 1):
            self.pump(0.1)
            alive = [child for child in alive if child.process is not None and child.process.poll() is None]
        for child in alive:
            self._say(child.name, "did not end in time, killing it")
            self._signal(child, signal.SIGKILL)
        for child in self._children:
            if child.process is not None:
                child.process.wait()
                self._drain(child)
        for server in reversed(self._servers):
            server.stop()
        (self._home / processes.REMEMBERED).unlink(missing_ok=True)

    @staticmethod
    def _signal(child: _Child, kind: signal.Signals) -> None:
        if child.process is not None:
            with contextlib.suppress(ProcessLookupError):
                if kind == signal.SIGKILL:
                    os.killpg(child.process.pid, kind)
                else:
                    child.process.send_signal(kind)
