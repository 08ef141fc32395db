"""Gives runs their own copy of the harness: containers mount it, and an update never changes a run under way."""

from __future__ import annotations

import compileall
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "harness"
_WANTED = (".py", ".sh")


def install_harness(home: Path, source: Path = SOURCE) -> Path:
    """Copy to `home/harness/<digest>` and return that; a copy that is there already is used as it is."""
    files = sorted(path for path in source.rglob("*") if path.suffix in _WANTED and path.is_file())
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(source)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    target = home / "harness" / digest.hexdigest()[:16]
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=target.parent))
    try:
        for path in files:
            copy = draft / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy)
        # Runs may read it, not write to it: compiled once here, for the Python version most of them share with us.
        compileall.compile_dir(draft, quiet=2, workers=1)
        for path in (draft, *draft.rglob("*")):
            path.chmod(0o755 if path.is_dir() or path.suffix == ".sh" else 0o644)
        try:
            draft.rename(target)
        except OSError:  # another worker was faster
            if not target.is_dir():
                raise
    finally:
        if draft.exists():
            shutil.rmtree(draft)
    os.sync()
    return target
