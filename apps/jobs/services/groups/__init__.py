"""Many runs of one job in one group: the times of a backfill, the rows of a table of inputs."""

from apps.jobs.services.groups.again import NothingFailed, run_failed_again
from apps.jobs.services.groups.backfill import MOST_RUNS, DueTime, preview_backfill, start_backfill
from apps.jobs.services.groups.inputs import start_inputs
from apps.jobs.services.groups.releasing import release

__all__ = [
    "MOST_RUNS",
    "DueTime",
    "NothingFailed",
    "preview_backfill",
    "release",
    "run_failed_again",
    "start_backfill",
    "start_inputs",
]
