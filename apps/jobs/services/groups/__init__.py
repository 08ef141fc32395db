"""Many runs of one job in one group: the times of a backfill, the rows of a table of inputs."""

from apps.jobs.services.groups.again import NothingFailed, run_failed_again
from apps.jobs.services.groups.backfill import DueTime, default_priority, preview_backfill, start_backfill
from apps.jobs.services.groups.inputs import check_inputs, start_inputs
from apps.jobs.services.groups.releasing import release
from apps.jobs.services.groups.starting import DEFAULT_CONCURRENCY, MOST_RUNS

__all__ = [
    "DEFAULT_CONCURRENCY",
    "MOST_RUNS",
    "DueTime",
    "NothingFailed",
    "check_inputs",
    "default_priority",
    "preview_backfill",
    "release",
    "run_failed_again",
    "start_backfill",
    "start_inputs",
]
