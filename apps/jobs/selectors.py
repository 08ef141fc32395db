"""What of jobs a person may see."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet

from apps.accounts.models import User
from apps.accounts.rights import allowed
from apps.jobs.models import Job
from apps.spiders.models import Spider, Version


def visible_jobs(user: User | AnonymousUser, action: str = "view") -> QuerySet[Job]:
    """By name, with project and spider."""
    return (
        allowed(user, action, Job)
        .select_related("project", "spider", "spider__current_version", "version")
        .order_by("name", "pk")
    )


def spiders_for_jobs(user: User | AnonymousUser) -> QuerySet[Spider]:
    """Spiders for which this person may make jobs: those they may edit. By name."""
    return allowed(user, "edit", Spider).select_related("project", "current_version").order_by("name", "pk")


def version_of(job: Job) -> Version | None:
    """The version a run of the job would use now: the pinned one, else the spider's current one."""
    return job.version or job.spider.current_version
