"""The lock under which a job is changed and run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from django.utils.translation import gettext as _

from apps.core.errors import NotFound
from apps.jobs.models import Job
from apps.spiders.models import Project, Spider, Version


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


def free_jobs(*, ids: Collection[int]) -> dict[int, Job]:
    """Those whose lock nobody holds, with all that their launch needs; a frozen holder must not keep the others.

    Many jobs share few spiders: each is read once.
    """
    rows = Job.objects.select_for_update(no_key=True, skip_locked=True)
    jobs = {job.pk: job for job in rows.filter(pk__in=ids).order_by("pk")}
    projects = Project.objects.in_bulk({job.project_id for job in jobs.values()})
    spiders = Spider.objects.select_related("current_version").in_bulk({job.spider_id for job in jobs.values()})
    versions = Version.objects.in_bulk({job.version_id for job in jobs.values() if job.version_id})
    for spider in spiders.values():
        if spider.project_id in projects:
            spider.project = projects[spider.project_id]
        if spider.current_version is not None:
            spider.current_version.spider = spider
    for job in jobs.values():
        job.project, job.spider = projects[job.project_id], spiders[job.spider_id]
        job.version = versions.get(job.version_id) if job.version_id else None
        if job.version is not None:
            job.version.spider = job.spider
    return jobs


def pools_of(*, ids: Collection[int]) -> defaultdict[int, list[int]]:
    """The pools of each of the jobs."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for job_id, pool_id in Job.pools.through.objects.filter(job__in=ids).values_list("job_id", "pool_id"):
        found[job_id].append(pool_id)
    return found
