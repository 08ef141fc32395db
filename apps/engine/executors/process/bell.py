"""Hears when a shim touches its file, through the kernel's inotify: nothing is polled."""

from __future__ import annotations

import ctypes
import os
import select
from collections.abc import Callable
from pathlib import Path
from threading import Event

from apps.engine.errors import EngineUnavailable

_IN_CLOSE_WRITE = 0x8
_CLOEXEC_NONBLOCK = os.O_CLOEXEC | os.O_NONBLOCK
_LOOK_SECONDS = 0.5

_libc = ctypes.CDLL(None, use_errno=True)


def listen(folder: Path, wake: Callable[[str], None], stop: Event) -> None:
    """Block until `stop`."""
    descriptor: int = _libc.inotify_init1(_CLOEXEC_NONBLOCK)
    if descriptor < 0:
        raise EngineUnavailable("This machine has no inotify instance left (fs.inotify.max_user_instances).")
    try:
        if _libc.inotify_add_watch(descriptor, os.fsencode(folder), _IN_CLOSE_WRITE) < 0:
            raise EngineUnavailable(f"The folder {folder} cannot be watched.")
        wake("")  # something may have happened while nobody listened
        while not stop.is_set():
            ready, _, _ = select.select([descriptor], [], [], _LOOK_SECONDS)
            if ready:
                os.read(descriptor, 65536)
                wake("")
    finally:
        os.close(descriptor)
