"""What of projects, spiders and versions a person may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.contrib.auth.models import AnonymousUser
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Count, OuterRef, QuerySet

from apps.accounts.models import User
from apps.accounts.rights import allowed
from apps.spiders.models import Project, Spider, Version


def visible_projects(user: User | AnonymousUser, action: str = "view") -> QuerySet[Project]:
    """By name."""
    return allowed(user, action, Project).order_by("slug", "pk")


def visible_spiders(user: User | AnonymousUser, action: str = "view") -> QuerySet[Spider]:
    """By name, with project and current version."""
    return allowed(user, action, Spider).select_related("project", "current_version").order_by("name", "pk")


def versions(spider: Spider) -> QuerySet[Version]:
    """Of a spider the caller was allowed to see; newest first."""
    return spider.versions.defer("parameter_schema", "item_schema").order_by("-created_at", "-pk")


@dataclass(frozen=True, slots=True)
class SpiderGlance:
    """A spider as the list shows it; `runs` are its last ones, newest first."""

    spider: Spider
    jobs: int
    runs: list[Any]


def spiders_at_a_glance(user: User | AnonymousUser, *, runs: int = 7) -> list[SpiderGlance]:
    """By name. Who may view a spider may view its jobs and runs, so these need no filter of their own."""
    run_model = apps.get_model("runs", "Run")
    newest = run_model._default_manager.filter(spider=OuterRef("pk")).order_by("-pk").values("pk")[:runs]
    spiders = list(
        visible_spiders(user)
        .defer("current_version__parameter_schema", "current_version__item_schema", "current_version__requirements")
        .annotate(run_ids=ArraySubquery(newest))
    )
    ids = [pk for spider in spiders for pk in spider.run_ids]
    by_id = run_model._default_manager.only(*_RUN_COLUMNS).in_bulk(ids)
    jobs = dict(
        apps.get_model("jobs", "Job")
        ._default_manager.filter(spider__in=[spider.pk for spider in spiders])
        .values_list("spider")
        .annotate(Count("pk"))
    )
    return [
        SpiderGlance(spider, jobs.get(spider.pk, 0), [by_id[pk] for pk in spider.run_ids if pk in by_id])
        for spider in spiders
    ]


_RUN_COLUMNS = ("state", "spider_id", "job_name", "queued_at", "started_at", "finished_at", "items", "errors")


def jobs_of(spider: Spider, *, most: int = 50) -> list[Any]:
    """Of a spider the caller was allowed to see; by name."""
    jobs = apps.get_model("jobs", "Job")._default_manager.filter(spider=spider)
    return list(jobs.order_by("name", "pk")[:most])


def last_runs_of(spider: Spider, *, most: int = 10) -> list[Any]:
    """Of a spider the caller was allowed to see; newest first."""
    runs = apps.get_model("runs", "Run")._default_manager.filter(spider=spider)
    return list(runs.only(*_RUN_COLUMNS).order_by("-pk")[:most])
