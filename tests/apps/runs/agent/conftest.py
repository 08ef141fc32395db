"""Fixtures of the agent's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apps.runs.agent.rig import Rig


@pytest.fixture
def rig(tmp_path: Path, db: None) -> Rig:
    return Rig(tmp_path)
