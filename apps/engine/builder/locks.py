"""One build per digest, across threads and processes of a host."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def digest_of(*parts: str | bytes) -> str:
    """16 hex digits."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:16]


@contextmanager
def build_lock(home: Path, digest: str, say: Callable[[str], None]) -> Iterator[None]:
    """The kernel drops the lock with its holder: a killed build blocks nobody."""
    folder = home / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / f"build-{digest}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another run is building this environment; waiting for it.")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
