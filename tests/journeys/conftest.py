"""Parts of a running panel that journeys share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.panel import Panel, panel


@pytest.fixture(scope="session")
def running_panel() -> Iterator[Panel]:
    """`manage.py up` with runs as processes, for tests that leave it as usable as they found it."""
    with panel("process") as started:
        yield started
