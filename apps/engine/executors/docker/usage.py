"""Use of a running container, read from its cgroup when we are on the same host: the stats call takes the engine ms."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker import APIClient

from apps.engine.docker_api import translated
from apps.engine.types import Sample

logger = logging.getLogger(__name__)

_CGROUP = Path("/sys/fs/cgroup")
_NANOS = 1_000_000_000
_MICROS = 1_000_000


@dataclass(frozen=True, slots=True)
class Groups:
    """Where one container's counters are; version 1 keeps them in one tree per controller."""

    pid: int
    cpu: Path
    memory: Path
    pids: Path
    version: int


def find_groups(pid: int, container_id: str) -> Groups | None:
    """None when that pid is not this container's in our view (another host, another pid namespace)."""
    try:
        text = Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return None
    by_controller: dict[str, str] = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        if container_id in path:
            by_controller |= dict.fromkeys(controllers.split(","), path.lstrip("/"))
    if "memory" in by_controller:
        trees = {name: _CGROUP / name / by_controller.get(name, "") for name in ("cpuacct", "memory", "pids")}
        found = Groups(pid, trees["cpuacct"], trees["memory"], trees["pids"], 1)
        return found if (found.memory / "memory.usage_in_bytes").exists() else None
    if "" in by_controller:
        tree = _CGROUP / by_controller[""]
        return Groups(pid, tree, tree, tree, 2) if (tree / "memory.current").exists() else None
    return None


def read_groups(groups: Groups) -> Sample | None:
    """None when it has ended meanwhile."""
    try:
        return _read_v1(groups) if groups.version == 1 else _read_v2(groups)
    except (OSError, ValueError):
        return None


def _read_v1(groups: Groups) -> Sample:
    stat = _pairs(groups.memory / "memory.stat")
    used = _number(groups.memory / "memory.usage_in_bytes") - stat.get("total_inactive_file", 0)
    received, sent = _network(groups.pid)
    return Sample(
        cpu_seconds=_number(groups.cpu / "cpuacct.usage") / _NANOS,
        memory_bytes=max(used, 0),
        memory_limit_bytes=_number(groups.memory / "memory.limit_in_bytes"),
        pids=_number(groups.pids / "pids.current"),
        network_rx_bytes=received,
        network_tx_bytes=sent,
    )


def _read_v2(groups: Groups) -> Sample:
    used = _number(groups.memory / "memory.current") - _pairs(groups.memory / "memory.stat").get("inactive_file", 0)
    limit = (groups.memory / "memory.max").read_text().strip()
    received, sent = _network(groups.pid)
    return Sample(
        cpu_seconds=_pairs(groups.cpu / "cpu.stat").get("usage_usec", 0) / _MICROS,
        memory_bytes=max(used, 0),
        memory_limit_bytes=0 if limit == "max" else int(limit),
        pids=_number(groups.pids / "pids.current"),
        network_rx_bytes=received,
        network_tx_bytes=sent,
    )


def _number(path: Path) -> int:
    return int(path.read_text())


def _pairs(path: Path) -> dict[str, int]:
    return {name: int(value) for name, value in (line.split() for line in path.read_text().splitlines())}


def _network(pid: int) -> tuple[int, int]:
    """Bytes received and sent by the container's interfaces, as its own /proc says."""
    received = sent = 0
    for line in Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]:
        name, _, counters = line.partition(":")
        if name.strip() != "lo":
            fields = counters.split()
            received, sent = received + int(fields[0]), sent + int(fields[8])
    return received, sent


def read_stats(api: APIClient, container_id: str) -> Sample | None:
    """The slow way, for an engine on another host."""
    with translated():
        stats: dict[str, Any] = api.stats(container_id, stream=False, one_shot=True)
    memory = stats.get("memory_stats") or {}
    if "usage" not in memory:
        return None
    detail = memory.get("stats") or {}
    cached = detail.get("total_inactive_file", detail.get("inactive_file", 0))
    networks = (stats.get("networks") or {}).values()
    return Sample(
        cpu_seconds=stats["cpu_stats"]["cpu_usage"]["total_usage"] / _NANOS,
        memory_bytes=max(memory["usage"] - cached, 0),
        memory_limit_bytes=memory.get("limit", 0),
        pids=(stats.get("pids_stats") or {}).get("current", 0),
        network_rx_bytes=sum(network["rx_bytes"] for network in networks),
        network_tx_bytes=sum(network["tx_bytes"] for network in networks),
    )
