"""Waiting for what another process does."""

from __future__ import annotations

import time
from collections.abc import Callable

from apps.runs.models import Run
from apps.runs.states import TERMINAL


def until(what: Callable[[], object], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, f"it did not happen within {seconds:g} s"
        time.sleep(0.05)


def is_over(run: Run) -> bool:
    return run.state in TERMINAL
