"""What of jobs a person may see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, Q, QuerySet

from apps.accounts.models import User
from apps.accounts.rights import allowed
from apps.jobs.models import Job
from apps.runs.models import Run
from apps.runs.selectors import listing
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


@dataclass(frozen=True, slots=True)
class JobGlance:
    """A job as the list shows it; `runs` are its last ones, newest first."""

    job: Job
    runs: list[Run]
    can_run: bool
    can_edit: bool


def jobs_at_a_glance(
    user: User | AnonymousUser, *, search: str = "", spider: str = "", after: str = "", size: int = 50, runs: int = 7
) -> list[JobGlance]:
    """By name, `size` at most, those after the job named `after`. Who may view a job may view its runs."""
    found = visible_jobs(user).defer(
        "parameters",
        "env",
        "version__parameter_schema",
        "version__item_schema",
        "spider__current_version__parameter_schema",
        "spider__current_version__item_schema",
    )
    if search:
        found = found.filter(Q(name__icontains=search) | Q(spider__name__icontains=search))
    if spider:
        found = found.filter(spider__name=spider)
    name, _, pk = after.rpartition("~")
    if pk.isascii() and pk.isdigit() and len(pk) <= 18:
        found = found.filter(Q(name__gt=name) | Q(name=name, pk__gt=int(pk)))
    newest = Run.objects.filter(job=OuterRef("pk")).order_by("-pk").values("pk")[:runs]
    jobs = list(found.annotate(run_ids=ArraySubquery(newest))[:size])
    by_id = listing.runs_with_ids([pk for job in jobs for pk in job.run_ids])
    runnable, editable = (_with_right(user, action, jobs) for action in ("run", "edit"))
    return [
        JobGlance(
            job=job,
            runs=[by_id[pk] for pk in job.run_ids if pk in by_id],
            can_run=job.pk in runnable,
            can_edit=job.pk in editable,
        )
        for job in jobs
    ]


def _with_right(user: User | AnonymousUser, action: str, jobs: Sequence[Job]) -> set[int]:
    ids = [job.pk for job in jobs]
    return set(allowed(user, action, Job).filter(pk__in=ids).values_list("pk", flat=True))


def last_runs(job: Job, *, most: int = 30) -> list[Run]:
    """Of a job the caller was allowed to see; newest first."""
    return listing.last_runs(Run.objects.filter(job=job), most)
