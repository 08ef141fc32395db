"""What of projects, spiders and versions a person may see."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet

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
