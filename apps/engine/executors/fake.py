"""An executor for tests of everything above it: no process, no container, real spool files, and time stands still."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

from apps.engine.errors import EngineError
from apps.engine.spool import OUT, RECORDS, create_spools
from apps.engine.types import EngineHealth, EnvironmentSpec, Handle, Observation, Phase, RunSpec, Sample

_KILLED = 137
_TERMINATED = 143


@dataclass
class FakeAttempt:
    """What a test steers: it writes to the spools and ends the attempt when it says so."""

    spec: RunSpec
    handle: Handle
    observation: Observation = field(default_factory=lambda: Observation(Phase.CREATED))
    asked: list[str] = field(default_factory=list)
    ignores_term: bool = False

    def print(self, *lines: str) -> None:
        self.write_out("".join(f"{line}\n" for line in lines).encode())

    def write_out(self, data: bytes) -> None:
        with (self.spec.run_dir / OUT).open("ab") as file:
            file.write(data)

    def emit(self, item: Mapping[str, Any], verb: str = "item") -> None:
        self.write_record(f"{verb} {json.dumps(dict(item))}\n".encode())

    def write_record(self, data: bytes) -> None:
        with (self.spec.run_dir / RECORDS).open("ab") as file:
            file.write(data)

    def exit(self, code: int = 0, *, oom: bool = False, engine_restarted: bool = False) -> None:
        self.observation = replace(
            self.observation,
            phase=Phase.EXITED,
            exit_code=code,
            oom_killed=oom,
            finished_at=datetime.now(UTC),
            engine_restarted=engine_restarted,
        )


class FakeExecutor:
    """`script` is called when an attempt starts; without one it runs until the test ends it."""

    kind = "fake"
    isolated = True

    def __init__(self, script: Callable[[FakeAttempt], None] | None = None) -> None:
        self.script = script
        self.attempts: dict[str, FakeAttempt] = {}
        self.calls: list[tuple[str, str]] = []
        self.failures: dict[str, EngineError] = {}
        self.faults: tuple[str, ...] = ()
        self.state = EngineHealth(ok=True, version="fake", cpus=2, memory_bytes=8 << 30)
        self._wake: Callable[[str], None] | None = None

    def fail(self, call: str, error: EngineError | None) -> None:
        """Let the calls of that name raise, until it is called with None."""
        if error is None:
            self.failures.pop(call, None)
        else:
            self.failures[call] = error

    def attempt(self, run_id: int, attempt: int = 1) -> FakeAttempt:
        return next(
            found
            for found in self.attempts.values()
            if (found.handle.run_id, found.handle.attempt) == (run_id, attempt)
        )

    def gateway(self) -> str:
        return "127.0.0.1"

    def prepare(self) -> None:
        self._called("prepare")

    def health(self) -> EngineHealth:
        return self.state

    def probe(self) -> tuple[str, ...]:
        return self.faults

    def environment(self, spec: EnvironmentSpec, say: Callable[[str], None]) -> str:
        self._called("environment")
        if not spec.is_plain:
            say("The requirements are installed.")
        return "fake-environment"

    def create(self, spec: RunSpec) -> Handle:
        self._called("create", spec.name)
        found = self.attempts.get(spec.name)
        if found is None:
            create_spools(spec.run_dir, spec.run_dir.parent.stat().st_uid, spec.run_dir.parent.stat().st_gid)
            handle = Handle(spec.name, spec.run_id, spec.attempt, f"fake:{spec.name}", spec.run_dir)
            found = self.attempts[spec.name] = FakeAttempt(spec, handle)
        return found.handle

    def start(self, handle: Handle) -> None:
        self._called("start", handle.name)
        found = self.attempts.get(handle.name)
        if found is None or found.observation.phase is not Phase.CREATED:
            return
        found.observation = Observation(Phase.RUNNING, started_at=datetime.now(UTC))
        if self.script is not None:
            self.script(found)
        self.ring()

    def find(self, install: str, run_id: int, attempt: int, run_dir: Path) -> Handle | None:
        self._called("find")
        found = self.attempts.get(f"claw-{install}-r{run_id}-a{attempt}")
        return found.handle if found else None

    def inspect(self, handle: Handle) -> Observation:
        self._called("inspect", handle.name)
        found = self.attempts.get(handle.name)
        return found.observation if found else Observation(Phase.MISSING)

    def terminate(self, handle: Handle) -> None:
        self._called("terminate", handle.name)
        found = self.attempts.get(handle.name)
        if found and found.observation.phase in (Phase.RUNNING, Phase.PAUSED):
            found.asked.append("terminate")
            if not found.ignores_term:
                found.exit(_TERMINATED)
                self.ring()

    def kill(self, handle: Handle) -> None:
        self._called("kill", handle.name)
        found = self.attempts.get(handle.name)
        if found and found.observation.phase in (Phase.RUNNING, Phase.PAUSED):
            found.asked.append("kill")
            found.exit(_KILLED)
            self.ring()

    def pause(self, handle: Handle) -> None:
        self._switch(handle, "pause", Phase.RUNNING, Phase.PAUSED)

    def resume(self, handle: Handle) -> None:
        self._switch(handle, "resume", Phase.PAUSED, Phase.RUNNING)

    def _switch(self, handle: Handle, call: str, frm: Phase, to: Phase) -> None:
        self._called(call, handle.name)
        found = self.attempts.get(handle.name)
        if found and found.observation.phase is frm:
            found.asked.append(call)
            found.observation = replace(found.observation, phase=to)

    def sample(self, handle: Handle) -> Sample | None:
        self._called("sample", handle.name)
        found = self.attempts.get(handle.name)
        if found is None or found.observation.phase not in (Phase.RUNNING, Phase.PAUSED):
            return None
        limit = found.spec.limits.memory_bytes
        return Sample(cpu_seconds=0.5, memory_bytes=limit // 4, memory_limit_bytes=limit, pids=1)

    def remove(self, handle: Handle) -> None:
        self._called("remove", handle.name)
        self.attempts.pop(handle.name, None)

    def forget(self, install: str, run_id: int, attempt: int) -> None:
        """It keeps no secrets."""

    def list(self, install: str) -> list[Handle]:
        self._called("list")
        return [found.handle for found in self.attempts.values() if found.spec.install == install]

    def watch(self, wake: Callable[[str], None], stop: Event) -> None:
        self._wake = wake
        wake("")
        stop.wait()
        self._wake = None

    def ring(self) -> None:
        """Tell the watcher that some attempt has changed."""
        if self._wake is not None:
            self._wake("")

    def _called(self, call: str, name: str = "") -> None:
        self.calls.append((call, name))
        if call in self.failures:
            raise self.failures[call]
