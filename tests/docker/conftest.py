"""One whole panel with the Docker executor for all tests that look at it from outside."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.docker.case_spiders import write_registry
from tests.panel import Panel, panel


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Panel]:
    with panel("docker", slots=6) as started:
        started.manage("sync_spiders", str(write_registry(tmp_path_factory.mktemp("cases"))))
        yield started
