"""What becomes of due times that nobody could fire in time."""

from __future__ import annotations

import pytest

from apps.runs.models import Run
from tests.apps.jobs.firing.timed import MINUTE, NOON, ledger, schedule, ticks

pytestmark = pytest.mark.django_db


def test_a_due_time_makes_one_run_that_stands_for_it() -> None:
    every_minute = schedule()
    ticks(NOON + MINUTE)
    ticks(NOON + MINUTE)
    run = Run.objects.get()
    assert (run.trigger, run.schedule, run.scheduled_for) == ("schedule", every_minute, NOON + MINUTE)
    assert ledger(every_minute) == [("12:01", "fired", "")]
