"""Many runs of one job in one group: the times of a backfill, the rows of a table of inputs."""

from apps.jobs.services.groups.again import NothingFailed, run_failed_again
from apps.jobs.services.groups.backfill import DueTime, default_priority, preview_backfill, start_backfill
from apps.jobs.services.groups.inputs import check_inputs, start_inputs
from apps.jobs.services.groups.releasing import release
from apps.jobs.services.groups.starting import DEFAULT_CONCURRENCY, MOST_AT_ONCE, MOST_RUNS
from apps.jobs.services.groups.tables import InputRow, InputTable, columns_of, table_of_inputs

__all__ = [
    "DEFAULT_CONCURRENCY",
    "MOST_AT_ONCE",
    "MOST_RUNS",
    "DueTime",
    "InputRow",
    "InputTable",
    "NothingFailed",
    "check_inputs",
    "columns_of",
    "default_priority",
    "preview_backfill",
    "release",
    "run_failed_again",
    "start_backfill",
    "start_inputs",
    "table_of_inputs",
]
