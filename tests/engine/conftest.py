"""Real shells, real interpreters, a real site on loopback: what the tests of the harness and the samples share."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
HARNESS = REPOSITORY / "apps" / "engine" / "harness"
SAMPLES = REPOSITORY / "spider_repo"
ENTRY = HARNESS / "entry.sh"
BARE_ENVIRONMENT = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True)
class Finished:
    """A run that ended: what it left in its two spools."""

    code: int
    log: str
    lines: list[str]
    seconds: float

    @property
    def items(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines if line.startswith("{")]

    def records(self, verb: str) -> list[dict[str, Any]]:
        return [json.loads(line.partition(" ")[2]) for line in self.lines if line.startswith(f"{verb} ")]


class Run:
    """A spider started as the panel starts it: entry.sh, spools, environment."""

    def __init__(
        self, folder: Path, command: list[str], *, cwd: Path, params: dict[str, Any], env: dict[str, str], shell: str
    ) -> None:
        self.out, self.records, tmp = folder / "out", folder / "records", folder / "tmp"
        tmp.mkdir(parents=True)
        self.out.touch()
        self.records.touch()
        environment = BARE_ENVIRONMENT | {
            "PYTHONPATH": str(HARNESS),
            "PYTHONUNBUFFERED": "1",
            "CLAW_OUT_FILE": str(self.out),
            "CLAW_TMP": str(tmp),
            "TMPDIR": str(tmp),
            "CLAW_RECORDS": str(self.records),
            "CLAW_PARAMS": json.dumps(params),
        }
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [shell, str(ENTRY), *command], cwd=cwd, env=environment | env, start_new_session=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def wait_for(self, text: str, *, seconds: float = 20) -> None:
        """Until the log or the records hold this text."""
        end = time.monotonic() + seconds
        while text not in self.out.read_text("utf-8", "replace") + self.records.read_text("utf-8", "replace"):
            assert time.monotonic() < end, f"{text!r} did not come: {self.out.read_text('utf-8', 'replace')}"
            assert self.process.poll() is None, f"ended early: {self.out.read_text('utf-8', 'replace')}"
            time.sleep(0.01)

    def terminate(self) -> None:
        self.process.terminate()

    def finish(self, *, seconds: float = 60) -> Finished:
        code = self.process.wait(timeout=seconds)
        return Finished(
            code=code,
            log=self.out.read_text("utf-8", "replace"),
            lines=self.records.read_text("utf-8").splitlines(),
            seconds=time.monotonic() - self.started,
        )


Start = Callable[..., Run]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a command as a run; what is left of it is killed at the end of the test."""
    runs: list[Run] = []

    def start_one(
        *command: str,
        cwd: Path = tmp_path,
        params: dict[str, Any] | None = None,
        env: dict[str, str] | None = None,
        shell: str = "sh",
    ) -> Run:
        run = Run(tmp_path / f"run{len(runs)}", list(command), cwd=cwd, params=params or {}, env=env or {}, shell=shell)
        runs.append(run)
        return run

    yield start_one
    for run in runs:
        run.__exit__()


@pytest.fixture
def python() -> str:
    return sys.executable


@pytest.fixture
def start_spider(start: Start, tmp_path: Path, python: str) -> Start:
    """Write the text as spider.py and start it with `clawspider run`."""

    def start_one(text: str, *, target: str = "spider.py", **options: Any) -> Run:
        (tmp_path / "spider.py").write_text(text, encoding="utf-8")
        return start(python, "-m", "clawspider", "run", target, **options)

    return start_one


@pytest.fixture(scope="session")
def demo_site() -> Iterator[str]:
    """Address of a demo site on a free loopback port."""
    command = [sys.executable, str(REPOSITORY / "deploy" / "demo_site" / "serve.py"), "--bind", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1].rstrip("/")
        process.terminate()


@dataclass
class Seen:
    """One request that the scripted server got."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: float


# Gets the request and how many for this path came before; answers status, headers and body.
Script = Callable[[Seen, int], tuple[int, dict[str, str], bytes]]


class ScriptedServer:
    """A web server that answers as the test says and remembers what it was asked."""

    def __init__(self) -> None:
        self.script: Script = lambda _seen, _count: (404, {}, b"")
        self.seen: list[Seen] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                seen = Seen(self.command, self.path, dict(self.headers), self.rfile.read(length), time.monotonic())
                count = sum(one.path == seen.path for one in outer.seen)
                outer.seen.append(seen)
                status, headers, body = outer.script(seen, count)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if "Content-Length" not in headers:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET  # noqa: N815 - the name is the base class's

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def paths(self) -> list[str]:
        return [one.path for one in self.seen]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def scrapy_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter with what the books sample requires, installed once for the session."""
    folder = tmp_path_factory.mktemp("scrapy") / "venv"
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert uv, "uv is one of the requirements"
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(folder)], check=True)
    interpreter = str(folder / "bin" / "python")
    requirements = str(SAMPLES / "books" / "requirements.txt")
    installed = subprocess.run(
        [uv, "pip", "install", "-q", "--python", interpreter, "-r", requirements],
        capture_output=True,
        text=True,
        check=False,
    )
    if installed.returncode:
        pytest.skip(f"no package index in reach: uv pip install -r {requirements}: {installed.stderr[-300:]}")
    return interpreter
