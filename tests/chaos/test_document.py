"""docs/how-runs-work.md names a test for each promise: those must be there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.chaos import checkers

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "how-runs-work.md"


def test_every_test_that_the_document_names_is_there() -> None:
    named = set(re.findall(r"`(test_\w+?)(?:\.py)?`", DOCUMENT.read_text()))
    files = list((ROOT / "tests").rglob("test_*.py"))
    known = {path.stem for path in files}
    for path in files:
        known |= set(re.findall(r"def (test_\w+)", path.read_text()))
    assert len(named) > 40
    assert sorted(named - known) == []


def test_every_checker_of_the_storm_is_explained() -> None:
    text = DOCUMENT.read_text()
    assert [check.__name__ for check in checkers.ALL if f"`{check.__name__}`" not in text] == []
