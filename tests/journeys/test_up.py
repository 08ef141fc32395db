"""`manage.py up` from an empty folder to a clean end, and again on the same folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import requests

from clawpanel.up import places
from tests.panel import ROOT, free_port

START_SECONDS = 300
STOP_SECONDS = 40
OWN = ("DATABASE_URL", "REDIS_URL", "CLAWPANEL_INSTALL", "CLAWPANEL_HOME", "CI")


class Up:
    """One `up` in a home of its own; `output` is all it has said."""

    def __init__(self, home: Path, executor: str) -> None:
        self.home = home
        self.port = free_port()
        self.environment = {name: value for name, value in os.environ.items() if name not in OWN} | {
            "CLAWPANEL_HOME": str(home),
            "CLAWPANEL_PORT": str(self.port),
            "CLAWPANEL_DEMO_PORT": str(self.port + 1),
            "CLAWPANEL_EXECUTOR": executor,
        }
        self.log = home / "up.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def start(self) -> None:
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "up"],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
            )
        self.wait_for("ClawPanel is ready.", START_SECONDS)

    def wait_for(self, words: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while words not in self.output:
            assert self.process is not None
            assert self.process.poll() is None, self.output[-4000:]
            assert time.monotonic() < deadline, self.output[-4000:]
            time.sleep(0.2)

    def second(self, **environment: str) -> subprocess.CompletedProcess[str]:
        """Another `up`, which is expected to refuse."""
        return subprocess.run(
            [sys.executable, "manage.py", "up"],
            cwd=ROOT,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def family(self) -> list[psutil.Process]:
        assert self.process is not None
        up = psutil.Process(self.process.pid)
        return [up, *up.children(recursive=True)]

    def interrupt(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(STOP_SECONDS)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(places.postgres_url(self.home)) as connection:
            return connection.execute(sql).fetchall()

    def address(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"


@contextlib.contextmanager
def home_for(executor: str) -> Iterator[Up]:
    folder = Path(tempfile.mkdtemp(prefix="claw-up-"))
    folder.chmod(0o755)
    up = Up(folder, executor)
    try:
        yield up
    finally:
        if up.process is not None and up.process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                up.interrupt()
            if up.process.poll() is None:
                for process in reversed(up.family()):
                    process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def assert_all_gone(family: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(family, timeout=5)
    assert alive == []


def whole_life(up: Up) -> None:
    up.start()
    assert requests.get(up.address("/readyz"), timeout=10).status_code == 200
    assert "Password" in up.output
    [(state, lines, items)] = up.query("SELECT state, lines, items FROM runs_run")
    assert state == "succeeded"
    assert lines > 0
    assert items > 0

    refused = up.second()
    assert refused.returncode == 2
    assert "already running" in refused.stderr
    assert "Traceback" not in refused.stderr

    family = up.family()
    assert up.interrupt() == 0
    assert_all_gone(family)
    assert "Traceback" not in up.output

    up.start()
    assert up.query("SELECT state, lines, items FROM runs_run") == [(state, lines, items)]
    assert "shown only now" not in up.output
    family = up.family()
    assert up.interrupt() == 0
    assert_all_gone(family)


@pytest.mark.timeout(900)
def test_a_life_with_the_process_executor() -> None:
    with home_for("process") as up:
        whole_life(up)
        assert "Executor  process" in up.output


@pytest.mark.docker
@pytest.mark.timeout(900)
def test_a_life_with_containers() -> None:
    with home_for("docker") as up:
        whole_life(up)
        assert "Executor  docker" in up.output


@pytest.mark.timeout(900)
def test_a_killed_start_is_cleaned_up_by_the_next_and_loses_nothing() -> None:
    with home_for("process") as up:
        up.start()
        before = up.query("SELECT id, state FROM runs_run")
        family = up.family()
        family[0].kill()
        family[0].wait(10)
        assert any(process.is_running() for process in family[1:])
        up.start()
        assert "left behind by an earlier start" in up.output
        assert up.query("SELECT id, state FROM runs_run") == before
        assert_all_gone(family)


def test_a_port_in_use_is_one_sentence() -> None:
    with home_for("process") as up, socket.socket() as holder:
        holder.bind(("127.0.0.1", up.port))
        holder.listen()
        refused = up.second()
        assert refused.returncode == 2
        assert refused.stderr.strip().count("\n") == 0
        assert f"Port {up.port} on 127.0.0.1 cannot be used" in refused.stderr


def test_a_database_that_is_not_there_is_one_sentence() -> None:
    with home_for("process") as up:
        refused = up.second(DATABASE_URL="postgres://nobody:word@127.0.0.1:9/none")
        assert refused.returncode == 2
        assert "DATABASE_URL does not answer" in refused.stderr
        assert "Traceback" not in refused.stderr
