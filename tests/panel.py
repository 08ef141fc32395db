"""A whole panel in a throw-away home, with a small client for its API: for journeys, cases and benches."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import requests

from clawpanel.up.servers import EmbeddedPostgres, EmbeddedValkey

ROOT = Path(__file__).resolve().parents[1]
PASSWORD = "panel-password-1"


def free_port() -> int:
    """A free loopback port below 32768, where outgoing connections do not come from."""
    for port in random.sample(range(21000, 32000), 200):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no free port")


@dataclass
class Panel:
    """A running `manage.py up`, and a token of its administrator."""

    home: Path
    port: int
    executor: str
    process: subprocess.Popen[bytes]
    environment: dict[str, str]
    session: requests.Session = field(default_factory=requests.Session)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def script(self, path: Path) -> str:
        """What a script of ours prints that is run with the panel's settings, in a process of its own."""
        done = subprocess.run(
            [sys.executable, str(path)],
            cwd=ROOT,
            env={**self.environment, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-3000:])
        return done.stdout

    def manage(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"manage.py {' '.join(arguments)}: {done.stderr[-2000:]}")
        return done.stdout

    def get(self, path: str, **query: Any) -> Any:
        answer = self.session.get(f"{self.url}/api/v1/{path}", params=query, timeout=60)
        answer.raise_for_status()
        return answer.json()

    def post(self, path: str, body: dict[str, Any]) -> Any:
        answer = self.session.post(f"{self.url}/api/v1/{path}", json=body, timeout=60)
        if not answer.ok:
            raise RuntimeError(f"{path}: {answer.status_code} {answer.text[:500]}")
        return answer.json()

    def job(
        self,
        name: str,
        spider: str,
        *,
        limits: dict[str, Any] | None = None,
        env: dict[str, str] | None = None,
        policies: dict[str, Any] | None = None,
        **parameters: Any,
    ) -> int:
        """A job whose runs may run side by side; `policies` are more of its fields, such as `retry`."""
        body = {"name": name, "spider": spider, "parameters": parameters, "limits": limits or {}, "env": env or {}}
        return int(self.post("jobs/", {**body, "overlap": "allow", **(policies or {})})["id"])

    def run(self, job: int) -> int:
        return int(self.post(f"jobs/{job}/run/", {})["id"])

    def wait(self, run: int, seconds: float = 120) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found: dict[str, Any] = self.get(f"runs/{run}/")
            if found["finished_at"]:
                return found
            time.sleep(0.1)
        raise RuntimeError(f"run {run} did not end in {seconds} s")

    def until(self, run: int, state: str, seconds: float = 60) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found: dict[str, Any] = self.get(f"runs/{run}/")
            if found["state"] == state:
                return found
            time.sleep(0.1)
        raise RuntimeError(f"run {run} is {found['state']}, not {state}, after {seconds} s")

    def lines(self, run: int) -> list[str]:
        """Every stored line of a run, all levels."""
        found: list[str] = []
        after = 0
        while rows := self.get(f"runs/{run}/log/", after=after, limit=1000, level=10)["results"]:
            found += [row["text"] for row in rows]
            after = rows[-1]["line"]
        return found

    def items(self, run: int) -> list[Any]:
        found: list[Any] = []
        after = 0
        while rows := self.get(f"runs/{run}/items/", after=after, limit=500)["results"]:
            found += [row["data"] for row in rows]
            after = rows[-1]["seq"]
        return found

    def processes(self) -> list[psutil.Process]:
        """All processes of the panel, its servers included (they are in sessions of their own)."""
        up = psutil.Process(self.process.pid)
        return [up, *up.children(recursive=True)]

    def process_with(self, *words: str) -> psutil.Process:
        for process in self.processes():
            if all(word in " ".join(process.cmdline()) for word in words):
                return process
        raise RuntimeError(f"no process with {words}")


@contextlib.contextmanager
def panel(executor: str, *, slots: int = 24, **more: str) -> Iterator[Panel]:
    """Start a panel in a throw-away home, wait until its sample run is done, stop it afterwards.

    `more` are environment variables. Each has an install name of its own: containers that are not a panel's runs are
    removed by it.
    """
    home = Path(tempfile.mkdtemp(prefix="claw-panel-"))
    home.chmod(0o755)
    port = free_port()
    environment = {
        **os.environ,
        "CLAWPANEL_HOME": str(home),
        "CLAWPANEL_PORT": str(port),
        "CLAWPANEL_DEMO_PORT": str(port + 1),
        "CLAWPANEL_EXECUTOR": executor,
        "CLAWPANEL_ADMIN_PASSWORD": PASSWORD,
        "CLAWPANEL_NODE_SLOTS": str(slots),
        **more,
    }
    for name in {"DATABASE_URL", "REDIS_URL", "CLAWPANEL_INSTALL"} - more.keys():
        environment.pop(name, None)
    with (home / "up.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "up"], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
    try:
        environment["DATABASE_URL"] = EmbeddedPostgres(home).url
        environment["REDIS_URL"] = EmbeddedValkey(home).url
        started = Panel(home, port, executor, process, environment)
        _wait_until_ready(started)
        token = started.manage("create_token", "admin", "--name", "tests").strip().splitlines()[-1]
        started.session.headers["Authorization"] = f"Token {token}"
        yield started
    finally:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(40)
        if process.poll() is None:
            process.kill()
        shutil.rmtree(home, ignore_errors=True)


def _wait_until_ready(started: Panel, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if started.process.poll() is not None:
            break
        with contextlib.suppress(requests.RequestException):
            if requests.get(f"{started.url}/readyz", timeout=5).ok:
                return
        time.sleep(0.3)
    raise RuntimeError("the panel did not start:\n" + (started.home / "up.log").read_text()[-4000:])
