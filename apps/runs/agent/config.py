"""What an agent is told of its machine, and how it names itself."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from apps.runs import leases

SLOTS_PER_CORE = 2
MEMORY_SHARE = 0.8  # the rest is for the panel, the engine and the page cache


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """Seconds and bytes throughout. Tests make it faster."""

    home: Path
    install: str
    node: str
    worker: str
    slots: int = 0  # 0: by the machine's cores
    demo_site: str = ""
    trust_network: bool = False
    heartbeat: float = 5.0
    sweep: float = 2.0
    adopt_every: float = 3.0
    observe_every: float = 2.0
    sample_every: float = 5.0
    care_every: float = 10.0
    reconcile_every: float = 30.0
    report_every: float = 30.0
    build_seconds: float = 900.0
    free_disk: int = 512 * 1024 * 1024
    most_behind: int = 64 * 1024 * 1024
    caught_up: int = 8 * 1024 * 1024
    starters: int = 8
    poison_deaths: int = leases.POISON_DEATHS

    @property
    def runs_home(self) -> Path:
        return self.home / "runs"


def from_settings() -> AgentConfig:
    return AgentConfig(
        home=Path(settings.CLAWPANEL_HOME),
        install=settings.CLAWPANEL_INSTALL,
        node=settings.CLAWPANEL_NODE or socket.gethostname(),
        worker=worker_id(),
        slots=settings.CLAWPANEL_NODE_SLOTS,
        demo_site=settings.CLAWPANEL_DEMO_SITE,
        trust_network=settings.CLAWPANEL_ISOLATION == "off",
        poison_deaths=settings.CLAWPANEL_POISON_DEATHS,
    )


def _space() -> str:
    """Names the set of processes in which a pid means something: this boot and pid namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
        return f"{boot}.{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return "unknown"


def _started(pid: int) -> str | None:
    """When the process began, in ticks since boot; None when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def worker_id(pid: int | None = None) -> str:
    pid = pid or os.getpid()
    return f"{_space()}-{pid}-{_started(pid)}"


def dead_workers(workers: Iterable[str]) -> list[str]:
    """Those that are proven gone: their lease need not run out first."""
    here = _space()
    gone = []
    for worker in workers:
        space, _, process = worker.partition("-")
        pid, _, started = process.partition("-")
        if here != "unknown" and space == here and pid.isdigit() and _started(int(pid)) != started:
            gone.append(worker)
    return gone
