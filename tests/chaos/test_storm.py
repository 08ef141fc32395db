"""A panel with real containers, database and broker, while all of them are torn at."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.chaos.checkers import breaches
from tests.chaos.storm import rage

SHORT_SECONDS = 120.0
SECONDS = float(os.environ.get("CLAW_CHAOS_SECONDS") or SHORT_SECONDS)
# Several, with commas between them, make several storms.
SEEDS = [int(seed) for seed in (os.environ.get("CLAW_CHAOS_SEED") or str(random.randrange(10**6))).split(",")]  # noqa: S311


@pytest.mark.chaos
@pytest.mark.docker
@pytest.mark.timeout(SECONDS + 1200)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_storm_loses_doubles_and_hangs_nothing(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\nCLAW_CHAOS_SEED={seed} CLAW_CHAOS_SECONDS={SECONDS:g}")
        storm = rage(seed, SECONDS)
        print(storm.report())
    found = breaches(storm.evidence)
    if found:
        (tmp_path / "panel.log").write_text(storm.log)
        found.append(f"the panel's log is in {tmp_path}")
    assert not found, f"seed {seed}:\n" + "\n".join(found)
    assert not storm.refused, storm.refused
    assert len(storm.evidence.promised) >= 20
    assert max((took for name, took in storm.takeovers if name == "worker SIGKILL"), default=0) < 30
