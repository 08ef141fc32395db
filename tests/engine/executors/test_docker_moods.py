"""An engine that is down, hangs, is cut off or comes back: nothing of it is taken for the end of a run."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from apps.engine.errors import EngineUnavailable
from apps.engine.executors.docker import DockerExecutor
from apps.engine.types import Phase
from tests.engine.executors.conftest import DOCKER_URL, Driver

pytestmark = pytest.mark.docker


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[_Relay]:
    found = _Relay(tmp_path / "docker.sock")
    yield found
    found.close()


def test_an_engine_that_is_not_there_is_unavailable_not_an_error_of_the_run(docker: Driver) -> None:
    nowhere = DockerExecutor(replace(docker.settings, docker_url="unix:///nonexistent/docker.sock"))
    handle = docker.script("pass")
    for call in ("inspect", "terminate", "kill", "pause", "resume", "sample", "remove", "start"):
        with pytest.raises(EngineUnavailable, match="does not answer"):
            getattr(nowhere, call)(handle)
    with pytest.raises(EngineUnavailable):
        nowhere.list(docker.settings.install)
    health = nowhere.health()
    assert not health.ok
    assert "does not answer" in health.message


def test_an_engine_that_hangs_is_unavailable_within_its_timeout(docker: Driver, tmp_path: Path) -> None:
    path = tmp_path / "hung.sock"
    with closing(socket.socket(socket.AF_UNIX)) as server:
        server.bind(str(path))
        server.listen(50)  # connections are taken, answers never come: as with a stopped daemon
        hung = DockerExecutor(replace(docker.settings, docker_url=f"unix://{path}", docker_timeout=2))
        started = time.monotonic()
        assert not hung.health().ok
        assert time.monotonic() - started < 5
        with pytest.raises(EngineUnavailable, match="in time"):
            hung.list(docker.settings.install)


def test_a_create_whose_answer_was_lost_is_adopted_at_the_next_try(docker: Driver, relay: _Relay) -> None:
    through = DockerExecutor(replace(docker.settings, docker_url=f"unix://{relay.path}", docker_timeout=2))
    through.prepare()
    spec = docker.spec(("python3", "-c", "print('once', flush=True)"), secrets={"token": "x"})
    warm = through.create(docker.spec(("true",)))  # the image is known from here on, so that create is the next request
    docker.handles.append(warm)
    relay.answers.clear()
    with pytest.raises(EngineUnavailable, match="no answer in time"):
        through.create(spec)
    relay.answers.set()
    docker.until(lambda: docker.executor.find(spec.install, spec.run_id, 1, spec.run_dir) is not None)
    handle = through.create(spec)
    docker.handles.append(handle)
    through.start(handle)
    assert docker.wait(handle).exit_code == 0
    assert docker.out(handle) == "once\n"
    assert docker.settings.secrets_dir(spec.name).exists()
    assert [found.name for found in through.list(spec.install)].count(spec.name) == 1


def test_a_start_whose_answer_was_lost_runs_it_once(docker: Driver, relay: _Relay) -> None:
    through = DockerExecutor(replace(docker.settings, docker_url=f"unix://{relay.path}", docker_timeout=2))
    handle = through.create(docker.spec(("python3", "-c", "print('once', flush=True)")))
    docker.handles.append(handle)
    through._api.start = _held(through._api.start, relay)  # type: ignore[method-assign]  # cut exactly here
    with pytest.raises(EngineUnavailable):
        through.start(handle)
    docker.until(lambda: docker.executor.inspect(handle).phase is Phase.EXITED)
    relay.answers.set()
    through.start(handle)
    assert docker.out(handle) == "once\n"


def _held(call: Callable[..., object], relay: _Relay) -> Callable[..., object]:
    def held(ref: str) -> object:
        relay.answers.clear()
        return call(ref)

    return held


def test_watching_goes_on_when_the_engine_comes_back(docker: Driver, relay: _Relay) -> None:
    """The stream goes through a socket that we cut, as a restart of the daemon does."""
    through = DockerExecutor(replace(docker.settings, docker_url=f"unix://{relay.path}"))
    woken, stop = threading.Event(), threading.Event()
    watcher = threading.Thread(target=through.watch, args=(lambda _name: woken.set(), stop))
    watcher.start()
    try:
        assert woken.wait(30)
        woken.clear()
        relay.cut()
        assert woken.wait(30)  # connected again: look, something may have been missed
        time.sleep(0.5)
        woken.clear()
        docker.script("pass")
        assert woken.wait(30)
    finally:
        stop.set()
        watcher.join(10)
    assert not watcher.is_alive()


class _Relay:
    """Passes a unix socket on to the engine until it is cut; while held, requests arrive but answers do not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen(50)
        self._open: list[socket.socket] = []
        self.answers = threading.Event()
        self.answers.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(DOCKER_URL.removeprefix("unix://") or "/var/run/docker.sock")
            self._open += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(one, other, one is far), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket, is_answer: bool) -> None:
        try:
            while data := one.recv(65536):
                if is_answer:
                    self.answers.wait()
                other.sendall(data)
        except OSError:
            pass
        finally:
            for end in (one, other):
                end.close()

    def cut(self) -> None:
        for end in self._open:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def close(self) -> None:
        self._server.close()
        self.cut()
