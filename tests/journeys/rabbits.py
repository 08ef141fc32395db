"""A real RabbitMQ on loopback ports, in a folder of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import amqp
import psutil

from tests.journeys.valkeys import until
from tests.panel import free_port

SCRIPT = "/usr/lib/rabbitmq/bin/rabbitmq-server"  # without the wrapper of Debian, which wants an account of its own


@dataclass
class Rabbit:
    folder: Path
    port: int = field(default_factory=free_port)
    mapper: int = field(default_factory=free_port)
    nodes: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"

    def start(self) -> None:
        # A mapper of its own: the usual one may belong to somebody else, and would stay.
        environment = {
            **os.environ,
            "HOME": str(self.folder),
            "RABBITMQ_NODENAME": f"claw{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self.nodes),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "data"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "none"),
            "ERL_EPMD_PORT": str(self.mapper),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }
        with (self.folder / "out").open("ab") as log:
            self.process = subprocess.Popen(
                [SCRIPT], env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        until(self.answers, 90, (self.folder / "out").read_text(errors="replace")[-2000:])

    def answers(self) -> bool:
        with contextlib.suppress(OSError, amqp.AMQPError), self.connection():
            return True
        return False

    def connection(self) -> amqp.Connection:
        return amqp.Connection(f"127.0.0.1:{self.port}", connect_timeout=2, read_timeout=5)

    def queue(self, name: str) -> tuple[int, int]:
        """Messages that nobody has taken yet, and who would take them."""
        with contextlib.suppress(OSError, amqp.AMQPError), self.connection() as connection:
            found = connection.channel().queue_declare(name, passive=True)
            return found.message_count, found.consumer_count
        return 0, 0

    def kill(self) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def end_mapper(self) -> None:
        """epmd has left the group and outlives it."""
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.name() == "epmd" and process.environ().get("ERL_EPMD_PORT") == str(self.mapper):
                    process.kill()


@contextlib.contextmanager
def rabbit() -> Iterator[Rabbit]:
    folder = Path(tempfile.mkdtemp(prefix="claw-rabbit-"))
    server = Rabbit(folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        server.end_mapper()
        shutil.rmtree(folder, ignore_errors=True)
