"""The container of a run: everything it may not do. Each flag was measured to hold together with the others."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from apps.engine.executors.layout import run_environment, run_ids
from apps.engine.settings import EngineSettings
from apps.engine.spool import OUT, RECORDS
from apps.engine.types import MIB, RunSpec

LABEL_INSTALL = "clawpanel.install"
LABEL_RUN = "clawpanel.run"
LABEL_ATTEMPT = "clawpanel.attempt"

ENTRY = ("/bin/sh", "/claw/harness/entry.sh")
PATHS = {
    "harness": "/claw/harness",
    "work": "/claw/work",
    "records": "/claw/records",
    "secrets": "/claw/secrets",
}
_VOLUME_BYTES = 64 * MIB
_SHM_BYTES = 64 * MIB
_OOM_SCORE = 500
_CPU_PERIOD_NANOS = 1_000_000_000


def labels_of(spec: RunSpec) -> dict[str, str]:
    return {LABEL_INSTALL: spec.install, LABEL_RUN: str(spec.run_id), LABEL_ATTEMPT: str(spec.attempt)}


def container_config(
    spec: RunSpec, settings: EngineSettings, *, harness: Path, secrets: Path, volumes: Iterable[str], cpus: int = 0
) -> dict[str, Any]:
    """As the Engine's API takes it. docker-py's own builder would cost more time than the call."""
    uid, gid = run_ids(settings)
    env = run_environment(spec, paths=PATHS)
    return {
        "Image": spec.environment,
        "User": f"{uid}:{gid}",
        "Entrypoint": list(ENTRY),
        "Cmd": list(spec.command),
        "Env": [f"{name}={value}" for name, value in env.items()],
        "WorkingDir": "/spider",
        "Labels": labels_of(spec),
        "Healthcheck": {"Test": ["NONE"]},
        "StopSignal": "SIGTERM",
        "Tty": False,
        "OpenStdin": False,
        "HostConfig": host_config(spec, settings, harness=harness, secrets=secrets, volumes=volumes, cpus=cpus),
    }


def host_config(
    spec: RunSpec, settings: EngineSettings, *, harness: Path, secrets: Path, volumes: Iterable[str], cpus: int = 0
) -> dict[str, Any]:
    """`cpus` is how many the engine has (0: unknown): it refuses a limit above that."""
    limits = spec.limits
    share = min(limits.cpus, cpus) if cpus else limits.cpus
    return {
        "Mounts": [
            _bind(spec.code_dir, "/spider"),
            _bind(harness, PATHS["harness"]),
            _bind(secrets, PATHS["secrets"]),
            _bind(spec.run_dir / OUT, "/claw/out", writable=True),
            _bind(spec.run_dir / RECORDS, PATHS["records"], writable=True),
        ],
        "Tmpfs": _tmpfs(spec, settings, volumes),
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges:true"],
        "ReadonlyRootfs": True,
        "Privileged": False,
        "Memory": limits.memory_bytes,
        "MemorySwap": limits.memory_bytes,  # the same: no swap
        "NanoCpus": int(share * _CPU_PERIOD_NANOS),
        "PidsLimit": limits.pids,
        "ShmSize": min(_SHM_BYTES, limits.memory_bytes // 4),
        "OomScoreAdj": _OOM_SCORE,
        "Ulimits": [
            {"Name": "nofile", "Soft": limits.open_files, "Hard": limits.open_files},
            {"Name": "core", "Soft": 0, "Hard": 0},
            {"Name": "fsize", "Soft": limits.output_bytes, "Hard": limits.output_bytes},
        ],
        "Init": True,  # as process 1 a Python program would ignore SIGTERM
        "IpcMode": "private",
        "RestartPolicy": {"Name": "no"},
        "AutoRemove": False,  # it would lose exit code and log
        "LogConfig": {"Type": "local", "Config": {"max-size": "1m", "max-file": "1", "compress": "false"}},
        "NetworkMode": settings.network,
    }


def _bind(source: Path, target: str, *, writable: bool = False) -> dict[str, Any]:
    return {"Type": "bind", "Source": str(source), "Target": target, "ReadOnly": not writable}


def _tmpfs(spec: RunSpec, settings: EngineSettings, volumes: Iterable[str]) -> dict[str, str]:
    """A tmpfs counts as memory of the run: half of the limit each, so that a full one is "no space", not a kill.

    A volume of the image would be writable without any limit.
    """
    uid, gid = run_ids(settings)
    size = min(spec.limits.tmp_bytes, spec.limits.memory_bytes // 2)
    mine = f"rw,nosuid,nodev,exec,size={size},mode=0700,uid={uid},gid={gid}"
    small = f"rw,nosuid,nodev,size={min(size, _VOLUME_BYTES)},mode=0700,uid={uid},gid={gid}"
    taken = {"/spider", "/claw", *PATHS.values(), "/claw/out"}
    tmpfs = {volume: small for volume in volumes if volume.rstrip("/") not in taken and volume.startswith("/")}
    return tmpfs | {"/tmp": f"rw,nosuid,nodev,exec,size={size},mode=1777", PATHS["work"]: mine}  # noqa: S108
