"""The supervisor with real processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clawpanel.refusal import CannotStart
from clawpanel.up import processes
from clawpanel.up import supervisor as supervision
from clawpanel.up.supervisor import DEATHS_BEFORE_READY, Service, Supervisor

Lines = list[tuple[str, str]]
STAYS = "import signal,time\nprint('here', flush=True)\nwhile True: time.sleep(60)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + STAYS


def python(name: str, program: str, stop_seconds: float = 10) -> Service:
    return Service(name, (sys.executable, "-c", program), {**os.environ}, stop_seconds=stop_seconds)


@contextlib.contextmanager
def running(home: Path) -> Iterator[tuple[Supervisor, Lines]]:
    lines: Lines = []
    supervisor = Supervisor(home=home, say=lambda who, text: lines.append((who, text)))
    with supervisor.signals():
        try:
            yield supervisor, lines
        finally:
            supervisor.stop()


def pump_until(supervisor: Supervisor, done: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, "it did not happen in time"
        supervisor.pump(0.1)


def test_a_dead_service_is_started_again(tmp_path: Path) -> None:
    with running(tmp_path) as (supervisor, lines):
        supervisor.ready = True
        supervisor.add(python("brief", "print('hello', flush=True)"))
        pump_until(supervisor, lambda: lines.count(("brief", "hello")) >= 2)
    assert ("brief", "ended with code 0, starting it again in 0.5 s") in lines


class Wavering:
    """A server that does not come up at its second start."""

    name = "wavering"

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def start(self) -> None:
        self.starts += 1
        program = "raise SystemExit(9)" if self.starts == 2 else STAYS
        self.process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.DEVNULL)
        if self.starts == 2:
            self.process.wait()
            raise CannotStart("No space left on device.")

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def test_a_server_that_does_not_come_back_at_once_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "SERVER_AGAIN_SECONDS", 0.5)
    server = Wavering()
    with running(tmp_path) as (supervisor, lines):
        supervisor.add_server(server)
        supervisor.ready = True
        assert server.process is not None
        server.process.kill()
        pump_until(supervisor, lambda: server.starts == 3)
        assert server.process.poll() is None
    assert ("wavering", "No space left on device.") in lines
    assert ("wavering", "trying again in 0.5 s") in lines


def test_a_list_of_processes_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    home = tmp_path / "gone"
    with running(home) as (supervisor, lines):
        supervisor.add(python("kind", STAYS))
        pump_until(supervisor, lambda: ("kind", "here") in lines)


def test_a_service_that_never_comes_up_is_a_refusal_with_its_last_words(tmp_path: Path) -> None:
    with running(tmp_path) as (supervisor, lines):
        supervisor.add(python("broken", "print('no such port', flush=True); raise SystemExit(3)"))
        with pytest.raises(CannotStart, match=r"(?s)broken does not start \(code 3\).*no such port"):
            pump_until(supervisor, lambda: False, seconds=60)
    assert lines.count(("broken", "no such port")) == DEATHS_BEFORE_READY


def test_the_last_words_of_a_dying_process_are_shown(tmp_path: Path) -> None:
    with running(tmp_path) as (supervisor, lines):
        code = supervisor.run_once(
            python("once", "import sys; sys.stdout.write('a\\nno newline'); raise SystemExit(7)")
        )
    assert code == 7
    assert lines == [("once", "a"), ("once", "no newline")]


def test_stop_ends_everything_within_its_time(tmp_path: Path) -> None:
    with running(tmp_path) as (supervisor, lines):
        supervisor.add(python("kind", STAYS))
        supervisor.add(python("stubborn", STUBBORN, stop_seconds=1))
        pump_until(supervisor, lambda: len(lines) == 2)
        started = time.monotonic()
    assert time.monotonic() - started < 13
    assert ("stubborn", "did not end in time, killing it") in lines
    assert not (tmp_path / processes.REMEMBERED).exists()


def test_a_signal_ends_the_wait(tmp_path: Path) -> None:
    with running(tmp_path) as (supervisor, lines):
        supervisor.add(python("kind", STAYS))
        pump_until(supervisor, lambda: bool(lines))
        os.kill(os.getpid(), signal.SIGTERM)
        supervisor.run_until_stopped()
        assert supervisor.stopping


def test_what_a_killed_start_left_behind_is_stopped_and_a_reused_id_is_not(tmp_path: Path) -> None:
    with running(tmp_path) as (supervisor, lines):
        supervisor.add(python("web", STAYS))
        pump_until(supervisor, lambda: bool(lines))
        remembered = (tmp_path / processes.REMEMBERED).read_text()
        (tmp_path / processes.REMEMBERED).write_text(f'{{"other": [{os.getpid()}, "1"], {remembered[1:]}')
        assert processes.stop_leftovers(tmp_path) == ["web"]
        assert processes.stop_leftovers(tmp_path) == []
