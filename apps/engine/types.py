"""Values that pass between the panel and the engine. Frozen, no Django, no Docker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from threading import Event
from typing import Any, Protocol

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What one attempt may use. Bytes and seconds throughout."""

    memory_bytes: int = 512 * MIB
    cpus: float = 1.0
    pids: int = 256
    tmp_bytes: int = 256 * MIB
    output_bytes: int = 4096 * MIB
    open_files: int = 4096
    run_seconds: int | None = 3600
    idle_seconds: int | None = None
    start_seconds: int = 120
    pause_seconds: int = 24 * 3600
    grace_seconds: int = 10


@dataclass(frozen=True, slots=True)
class EnvironmentSpec:
    """What a version needs to run in: requirements text (may be empty) on top of the runner's base."""

    requirements: str = ""

    @property
    def is_plain(self) -> bool:
        return not any(line.strip() and not line.strip().startswith("#") for line in self.requirements.splitlines())


def attempt_name(install: str, run_id: int, attempt: int) -> str:
    """Of its container, and of the folder of its secrets."""
    return f"claw-{install}-r{run_id}-a{attempt}"


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One attempt, ready to be created. `environment` is what `Executor.environment()` returned."""

    install: str
    run_id: int
    attempt: int
    token: int
    request_id: str
    spider: str
    command: tuple[str, ...]
    code_dir: Path
    run_dir: Path
    environment: str
    params: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)

    @property
    def name(self) -> str:
        return attempt_name(self.install, self.run_id, self.attempt)


@dataclass(frozen=True, slots=True)
class Handle:
    """Where an attempt lives: the container's or shim's name is deterministic, `ref` is the engine's own id."""

    name: str
    run_id: int
    attempt: int
    ref: str
    run_dir: Path


class Phase(StrEnum):
    CREATED = "created"
    RUNNING = "running"
    PAUSED = "paused"
    EXITED = "exited"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Observation:
    """What the engine says of an attempt. Only `EXITED` ends a run; `MISSING` is proof that it is gone.

    `engine_restarted`: it ended because the engine itself was ended or started anew.
    """

    phase: Phase
    exit_code: int | None = None
    oom_killed: bool = False
    started_at: datetime | None = None
    finished_at: datetime | None = None
    error: str = ""
    engine_restarted: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """Use of one attempt at an instant. `cpu_seconds` is cumulative; the reader makes a rate of two samples."""

    cpu_seconds: float
    memory_bytes: int
    memory_limit_bytes: int
    pids: int
    network_rx_bytes: int = 0
    network_tx_bytes: int = 0


@dataclass(frozen=True, slots=True)
class EngineHealth:
    ok: bool
    message: str = ""
    version: str = ""
    cpus: int = 0
    memory_bytes: int = 0
    warnings: tuple[str, ...] = ()


class Executor(Protocol):
    """Runs attempts somewhere. Every call is idempotent and raises `EngineError` (see errors.py) or returns."""

    kind: str
    isolated: bool

    def prepare(self) -> None:
        """Make what all runs share (network, firewall, folders). Called at agent start and safe to repeat."""

    def gateway(self) -> str:
        """The address of this host that a run can reach, where the demo site must listen."""

    def health(self) -> EngineHealth:
        """Cheap: answers within 5 s, never raises."""

    def probe(self) -> tuple[str, ...]:
        """Start a probe run: same file seen on both sides, host not reachable. Returns one sentence a fault."""

    def environment(self, spec: EnvironmentSpec, say: Callable[[str], None]) -> str:
        """Image reference or interpreter path for these requirements, built when missing; `say` gets log lines."""

    def create(self, spec: RunSpec) -> Handle:
        """Create without starting; an attempt of that name of our install is returned as it is (adoption)."""

    def start(self, handle: Handle) -> None:
        """Start when still `created`; anything else is left alone (starting an exited one would run it again)."""

    def find(self, install: str, run_id: int, attempt: int, run_dir: Path) -> Handle | None:
        """The handle of an attempt that exists on this engine."""

    def inspect(self, handle: Handle) -> Observation: ...

    def terminate(self, handle: Handle) -> None:
        """SIGTERM; no wait."""

    def kill(self, handle: Handle) -> None:
        """SIGKILL to all of it; no wait."""

    def pause(self, handle: Handle) -> None: ...

    def resume(self, handle: Handle) -> None: ...

    def sample(self, handle: Handle) -> Sample | None:
        """None when it is not running."""

    def remove(self, handle: Handle) -> None:
        """Remove the container or shim and its secrets; spools are left to the caller."""

    def forget(self, install: str, run_id: int, attempt: int) -> None:
        """Remove what lies beside an attempt that may have no container or shim any more: its secrets."""

    def list(self, install: str) -> list[Handle]:
        """All attempts of this install that exist on this engine, in any phase."""

    def watch(self, wake: Callable[[str], None], stop: Event) -> None:
        """Block until `stop`; call `wake` with its name (or "", which may be any) whenever some attempt may be over.

        A hint, never proof.
        """
