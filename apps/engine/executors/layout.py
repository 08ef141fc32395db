"""What every executor lays out for an attempt: spools, secret files, environment."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from apps.engine.errors import CreateFailed
from apps.engine.settings import EngineSettings
from apps.engine.types import RunSpec

# Limits of the kernel: one string of an environment, and the sum of all with the command.
MAX_ENV_STRING = 128 * 1024 - 1
MAX_ENV_TOTAL = 1024 * 1024
# The CLAW_* variables that come with the order: where the samples find something to crawl, and what is repaired.
FROM_ORDER = frozenset({"CLAW_DEMO_SITE", "CLAW_FAILED_RUN"})


def run_ids(settings: EngineSettings) -> tuple[int, int]:
    """The uid and gid of spiders: a number of their own when we may choose, else ours."""
    if os.geteuid() == 0:
        return settings.run_uid, settings.run_uid
    return os.getuid(), os.getgid()


def run_environment(spec: RunSpec, *, paths: Mapping[str, str]) -> dict[str, str]:
    """`paths` are the executor's own CLAW_* locations; the job's variables never override ours."""
    job = {name: value for name, value in spec.env.items() if not name.startswith("CLAW_") or name in FROM_ORDER}
    env = {"PYTHONUNBUFFERED": "1", "TZ": "UTC", "LANG": "C.UTF-8", **job}
    harness = paths["harness"]
    env["PYTHONPATH"] = f"{harness}:{job['PYTHONPATH']}" if job.get("PYTHONPATH") else harness
    env |= {
        "HOME": paths["work"],
        "CLAW_RUN": str(spec.run_id),
        "CLAW_ATTEMPT": str(spec.attempt),
        "CLAW_REQUEST_ID": spec.request_id,
        "CLAW_SPIDER": spec.spider,
        "CLAW_PARAMS": json.dumps(dict(spec.params), ensure_ascii=False, separators=(",", ":")),
        "CLAW_RECORDS": paths["records"],
        "CLAW_SECRETS": paths["secrets"],
        "CLAW_OUTPUT": paths["work"],
    }
    _check_environment(env, spec)
    return env


def _check_environment(env: Mapping[str, str], spec: RunSpec) -> None:
    total = sum(len(part.encode("utf-8", "surrogateescape")) + 1 for part in spec.command)
    for name, value in env.items():
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise CreateFailed(f"The environment variable {name!r} has a name or value that cannot be passed on.")
        size = len(name) + len(value.encode("utf-8", "surrogateescape")) + 2
        if size > MAX_ENV_STRING:
            what = "parameters are" if name == "CLAW_PARAMS" else f"environment variable {name} is"
            raise CreateFailed(f"The {what} too large to be passed to a program: {size} of {MAX_ENV_STRING} bytes.")
        total += size
    if total > MAX_ENV_TOTAL:
        raise CreateFailed(f"Command and environment are too large: {total} of {MAX_ENV_TOTAL} bytes.")
    if not spec.command or any("\0" in part for part in spec.command):
        raise CreateFailed("The command is empty or holds a NUL character.")


def write_secrets(folder: Path, secrets: Mapping[str, str], uid: int, gid: int) -> None:
    """One file a secret, readable by the run's user alone; a folder that is there already is in use and stays."""
    for name in secrets:
        if not name or "/" in name or "\0" in name or name in (".", ".."):
            raise CreateFailed(f"{name!r} cannot be the name of a secret.")
    folder.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
    found = folder.parent.stat(follow_symlinks=False)
    if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode):
        # Somebody else made it first, in a place everybody may write to.
        raise CreateFailed(f"The folder for secrets, {folder.parent}, belongs to another user.")
    if folder.is_dir():
        return
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=folder.parent))
    for name, value in secrets.items():
        path = draft / name
        path.write_text(value, encoding="utf-8", errors="surrogateescape")
        path.chmod(0o400)
        _give(path, uid, gid)
    _give(draft, uid, gid)
    try:
        draft.rename(folder)
    except OSError:  # another worker was faster
        remove_secrets(draft)
        if not folder.is_dir():
            raise


def remove_secrets(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _give(path: Path, uid: int, gid: int) -> None:
    if os.geteuid() == 0:
        os.chown(path, uid, gid, follow_symlinks=False)


def own_folder(path: Path, uid: int, gid: int, mode: int = 0o700) -> Path:
    path.mkdir(mode=mode, parents=True, exist_ok=True)
    _give(path, uid, gid)
    return path
