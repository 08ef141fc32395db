"""What all tests share."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest


@pytest.fixture
def now() -> datetime:
    """An instant of real time: the database compares with its own clock."""
    return datetime.now(UTC)
