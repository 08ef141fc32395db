"""One whole panel with the Docker executor for all tests that look at it from outside."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.docker.case_spiders import write_registry
from tests.panel import Panel, panel


@pytest.fixture(scope="session")
def running() -> Iterator[Panel]:
    with panel("docker", slots=6) as started:
        yield started


@pytest.fixture(scope="session")
def with_cases(running: Panel, tmp_path_factory: pytest.TempPathFactory) -> Panel:
    """The same panel, with the misbehaving programs registered."""
    running.manage("sync_spiders", str(write_registry(tmp_path_factory.mktemp("cases"))))
    return running
