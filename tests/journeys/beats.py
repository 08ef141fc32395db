"""Real beats on the test database, which a test may kill and freeze."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from django.db import connection

from tests.journeys.worker import ROOT, wait_for_sessions_to_end


@dataclass
class Beat:
    """`name` is what its sessions are called in the database."""

    name: str
    process: subprocess.Popen[bytes]
    frozen: bool = False

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)
        self.frozen = True

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.frozen = False

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def is_ready(self) -> bool:
        """It looks at the clock: only its clock has a session that says so."""
        if self.frozen or self.process.poll() is not None:
            return False
        with connection.cursor() as cursor:
            query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND query LIKE %s"
            cursor.execute(query, [self.name, "%clock_timestamp()%"])
            return bool(cursor.fetchone()[0])


@dataclass
class Beats:
    home: Path
    all: list[Beat] = field(default_factory=list)
    _made: int = 0

    def start(self) -> Beat:
        self._made += 1
        name = f"beat-{os.getpid()}-{self._made}"
        parts = urlsplit(os.environ["DATABASE_URL"])
        query = "&".join(filter(None, (parts.query, f"application_name={name}")))
        environment = {
            **os.environ,
            "DATABASE_URL": urlunsplit(parts._replace(path=f"/{connection.settings_dict['NAME']}", query=query)),
            "CLAWPANEL_HOME": str(self.home),
            "CELERY_SKIP_CHECKS": "1",
        }
        command = [sys.executable, "-m", "celery", "--quiet", "-A", "clawpanel", "beat", "-l", "WARNING"]
        command += ["--pidfile", "", "--schedule", str(self.home / name)]
        with (self.home / "beat.log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        beat = Beat(name, process)
        self.all.append(beat)
        return beat

    def start_ready(self, number: int) -> list[Beat]:
        beats = [self.start() for _ in range(number)]
        for beat in beats:
            self.wait_until_ready(beat)
        return beats

    def wait_until_ready(self, beat: Beat, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not beat.is_ready:
            assert beat.process.poll() is None, self.log()[-4000:]
            assert time.monotonic() < deadline, f"{beat.name} does not look at the clock\n{self.log()[-4000:]}"
            time.sleep(0.05)

    def log(self) -> str:
        return (self.home / "beat.log").read_text(errors="replace")

    def close(self) -> None:
        for beat in self.all:
            if beat.process.poll() is None:
                beat.kill()
        wait_for_sessions_to_end()


@contextlib.contextmanager
def beats() -> Iterator[Beats]:
    home = Path(tempfile.mkdtemp(prefix="claw-beat-"))
    made = Beats(home)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(home, ignore_errors=True)


def cut_sessions(name: str) -> int:
    """The database drops all sessions of that name, whatever they are doing."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", [name])
        return len(cursor.fetchall())
