"""A real Celery worker on the test database, which a test may kill."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings
from django.db import connection

from apps.core.actors import Actor
from apps.runs.models import Run
from apps.runs.services import RunOrder, request_run
from apps.runs.states import Trigger
from apps.spiders import archive
from apps.spiders.models import CodeArchive
from tests.factories import SpiderFactory, VersionFactory

ROOT = Path(__file__).resolve().parents[2]
TESTER = Actor("user", "tester")

SLOW = """
import json, os, sys, time
count, per_second, items_every, code = (int(part) for part in sys.argv[1:5])
records = os.open(os.environ["CLAW_RECORDS"], os.O_WRONLY | os.O_APPEND)
start = time.monotonic()
for number in range(1, count + 1):
    print(f"line {number}", flush=True)
    if number % items_every == 0:
        os.write(records, json.dumps({"n": number // items_every}).encode() + b"\\n")
    time.sleep(max(0, start + number / per_second - time.monotonic()))
sys.exit(code)
"""


@dataclass
class Bench:
    """A home with one spider, and workers that can be started and killed on it."""

    home: Path
    executor: str = "process"
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    more: dict[str, str] = field(default_factory=dict)

    def start_worker(self, **more: str) -> subprocess.Popen[bytes]:
        parts = urlsplit(os.environ["DATABASE_URL"])
        name = connection.settings_dict["NAME"]
        environment = {
            **os.environ,
            "DATABASE_URL": urlunsplit(parts._replace(path=f"/{name}")),
            "CLAWPANEL_HOME": str(self.home),
            "CLAWPANEL_EXECUTOR": self.executor,
            "CLAWPANEL_NODE": "node-t",
            "CLAWPANEL_NODE_SLOTS": "24",
            "CELERY_SKIP_CHECKS": "1",
            **self.more,
            **more,
        }
        command = [sys.executable, "-m", "celery", "--quiet", "-A", "clawpanel", "worker", "-P", "threads", "-c", "4"]
        command += ["-Q", "control,node.node-t", "--without-gossip", "--without-mingle", "-l", "INFO"]
        with (self.home / "worker.log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        self.workers.append(process)
        return process

    def kill_worker(self) -> None:
        """As the kernel would: no goodbye, the whole group at once."""
        worker = self.workers[-1]
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def log(self) -> str:
        return (self.home / "worker.log").read_text(errors="replace")

    def request(self, script: str, *arguments: str, **given: object) -> Run:
        spider = SpiderFactory()
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "main.py").write_text(script)
            digest, content = archive.pack(Path(folder))
        code, _ = CodeArchive.objects.get_or_create(
            digest=digest, defaults={"content": content, "created_at": datetime.now(UTC)}
        )
        version = VersionFactory(spider=spider, code=code, command=["python3", "main.py", *arguments])
        order = RunOrder(version=version, project=spider.project, trigger=Trigger.MANUAL, memory_mb=128, **given)  # type: ignore[arg-type]
        return request_run(order=order, by=TESTER, now=datetime.now(UTC))[0]

    def wait(self, run: Run, what: Callable[[Run], bool], seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while True:
            run.refresh_from_db()
            if what(run):
                return
            assert time.monotonic() < deadline, f"run is {run.state} {run.reason} {run.detail}\n{self.log()[-4000:]}"
            time.sleep(0.05)

    def close(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()
        wait_for_sessions_to_end()
        if self.executor == "docker":
            label = f"label=clawpanel.install={settings.CLAWPANEL_INSTALL}"
            left = subprocess.run(
                ["docker", "ps", "-aq", "--filter", label], capture_output=True, text=True, check=False
            )
            if left.stdout.split():
                subprocess.run(["docker", "rm", "-f", *left.stdout.split()], capture_output=True, check=False)


def wait_for_sessions_to_end(seconds: float = 10) -> None:
    """PostgreSQL learns of a killed client a moment later; until then the test database cannot be dropped."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            if not cursor.fetchone()[0]:
                return
        time.sleep(0.05)


@contextlib.contextmanager
def bench(executor: str = "process", **more: str) -> Iterator[Bench]:
    """Other users must be able to enter the home: spiders run as one of their own."""
    home = Path(tempfile.mkdtemp(prefix="claw-worker-"))
    home.chmod(0o755)
    made = Bench(home, executor, more=more)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(home, ignore_errors=True)
