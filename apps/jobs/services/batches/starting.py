"""The beginning of a batch: all that follows a job, frozen."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from apps.core.actors import Actor
from apps.jobs.models import Dependency, Job
from apps.jobs.services.launching import Launch
from apps.runs.models import Batch, Run


def jobs_with_followers(*, job_ids: Collection[int]) -> set[int]:
    """Those of the jobs whose launch begins a batch: whoever launches many at once launches these one by one."""
    return set(Dependency.objects.filter(upstream__in=job_ids).values_list("upstream_id", flat=True))


def start_batch(*, root: Run, job: Job, wanted: Launch, by: Actor, now: datetime) -> Batch | None:
    """Insert the run of each job that follows `job`, waiting, its order frozen; None when none does.

    The caller holds the lock on the job's row. `root` becomes the first run of the batch.
    """
    return None
