"""Writing jobs and asking for their runs."""

from apps.jobs.services.composing import save_job_with_schedule
from apps.jobs.services.parameters import NoVersion
from apps.jobs.services.repairs import start_repairs
from apps.jobs.services.running import Launch, launch, run_job
from apps.jobs.services.writing import JobNameTaken, create_job, delete_job, update_job

__all__ = [
    "JobNameTaken",
    "Launch",
    "NoVersion",
    "create_job",
    "delete_job",
    "launch",
    "run_job",
    "save_job_with_schedule",
    "start_repairs",
    "update_job",
]
