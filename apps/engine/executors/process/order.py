"""The files between executor and shim: what to run, that it runs, how it ended."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from apps.engine.executors.layout import run_environment
from apps.engine.settings import EngineSettings
from apps.engine.spool import OUT, RECORDS
from apps.engine.types import RunSpec

FOLDER = "shim"
BELLS = "bells"
_CPU_SECONDS_SPARE = 60
_PYTHONS = ("python3", "python")


def make_order(spec: RunSpec, settings: EngineSettings, harness: Path, *, uid: int, gid: int) -> dict[str, Any]:
    """All that a shim needs to know."""
    work = spec.run_dir / "work"
    paths = {
        "harness": str(harness),
        "work": str(work),
        "records": str(spec.run_dir / RECORDS),
        "secrets": str(settings.secrets_dir(spec.name)),
    }
    env = {
        # In a virtualenv this makes its scripts the first to be found.
        "PATH": f"{Path(spec.environment).parent}:/usr/local/bin:/usr/bin:/bin",
        "TMPDIR": str(work / "tmp"),
        "PYTHONDONTWRITEBYTECODE": "1",
        **run_environment(spec, paths=paths),
        "CLAW_OUT_FILE": str(spec.run_dir / OUT),
        "CLAW_TMP": str(work / "tmp"),
    }
    command = list(spec.command)
    if command[0] in _PYTHONS:
        command[0] = spec.environment
    limits = spec.limits
    cpu_seconds = int((limits.run_seconds or 0) * max(limits.cpus, 1))
    return {
        "install": spec.install,
        "run_id": spec.run_id,
        "attempt": spec.attempt,
        "name": spec.name,
        "argv": ["/bin/sh", str(harness / "entry.sh"), *command],
        "env": env,
        "cwd": str(spec.code_dir),
        "uid": uid,
        "gid": gid,
        "out": str(spec.run_dir / OUT),
        "bell": str(settings.home / BELLS / spec.install),
        "limits": {
            "memory_bytes": limits.memory_bytes,
            "pids": limits.pids,
            "output_bytes": limits.output_bytes,
            "open_files": limits.open_files,
            "cpu_seconds": cpu_seconds + _CPU_SECONDS_SPARE if cpu_seconds else 0,
        },
    }


def write_order(folder: Path, order: dict[str, Any]) -> None:
    """Whole or not at all; it holds the environment of the run, so for us alone."""
    folder.mkdir(mode=0o700, exist_ok=True)
    draft = folder / f"order.{os.getpid()}.new"
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(order))
    draft.replace(folder / "order.json")


def read_text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def read_json(path: Path) -> dict[str, Any]:
    """Empty when the file is not there: it is always written whole."""
    text = read_text(path)
    content: dict[str, Any] = json.loads(text) if text else {}
    return content


def instant(seconds: float | None) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


def first_closed(*paths: Path) -> Path | None:
    """The first folder on the way to one of them that users other than its owner may not enter."""
    for path in paths:
        for folder in (*reversed(path.absolute().parents), path.absolute()):
            try:
                if folder.is_dir() and not folder.stat().st_mode & 0o001:
                    return folder
            except OSError:
                return folder
    return None
