"""Reads of jobs: each takes the user, or a job that was taken through `visible_jobs`."""

from apps.jobs.selectors.jobs import (
    JobGlance,
    jobs_at_a_glance,
    last_runs,
    spiders_for_jobs,
    version_of,
    visible_jobs,
)

__all__ = [
    "JobGlance",
    "jobs_at_a_glance",
    "last_runs",
    "spiders_for_jobs",
    "version_of",
    "visible_jobs",
]
