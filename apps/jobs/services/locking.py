"""The lock under which a job is changed and run."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext as _

from apps.core.errors import NotFound
from apps.jobs.models import Job


def locked_job(job: Job) -> Job:
    """The job as it is now.

    The lock keeps its secrets from being dropped while a run takes them over, and makes launches of the job come one
    after the other. It lets other rows refer to the job: two jobs that name each other must not wait for each other.
    """
    rows = Job.objects.select_for_update(of=("self",), no_key=True)
    found = rows.select_related("project", "spider__current_version", "version").filter(pk=job.pk).first()
    if found is None:
        raise NotFound(_("This job has been deleted."))
    return found


def locked_jobs(ids: Iterable[int]) -> list[Job]:
    """The same for many, in the order of their ids, so that two who lock several never wait for each other."""
    rows = Job.objects.select_for_update(of=("self",), no_key=True)
    return list(rows.filter(pk__in=set(ids)).order_by("pk"))


def free_jobs(*, ids: Iterable[int]) -> dict[int, Job]:
    """Those whose lock nobody holds, with all that their launch needs. Who waits for none of them cannot be kept."""
    rows = Job.objects.select_for_update(of=("self",), no_key=True, skip_locked=True)
    rows = rows.select_related("project", "spider__current_version", "version").prefetch_related("pools")
    found = {job.pk: job for job in rows.filter(pk__in=set(ids)).order_by("pk")}
    for job in found.values():
        for version in (job.version, job.spider.current_version):
            if version is not None and version.spider_id == job.spider_id:
                version.spider = job.spider
    return found
