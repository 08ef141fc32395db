"""Projects, spiders and versions in the admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.accounts.admin import AnchorAdmin, ReadOnlyAdmin
from apps.spiders.models import Project, Spider, Version


@admin.register(Project)
class ProjectAdmin(AnchorAdmin):
    change_right = "manage"
    list_display = ("slug", "name", "created_at")
    search_fields = ("slug", "name")
    fields = ("slug", "name", "description", "created_at")
    readonly_fields = ("created_at",)
    ordering = ("slug",)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return bool(request.user.is_superuser)

    def save_model(self, request: HttpRequest, obj: Project, form: Any, change: bool) -> None:
        if not change:
            obj.created_at = timezone.now()
        super().save_model(request, obj, form, change)


@admin.register(Spider)
class SpiderAdmin(AnchorAdmin, ReadOnlyAdmin):
    """Spiders come from the registry (`manage.py sync_spiders`); here one looks, and grants rights."""

    # Only so that the page of rights is offered: all fields are read-only.
    change_right = "manage"
    list_display = ("name", "title", "kind", "project", "current_version", "author")
    list_filter = ("kind",)
    list_select_related = ("project", "current_version")
    search_fields = ("name", "author")
    ordering = ("name",)

    def save_model(self, request: HttpRequest, obj: Spider, form: Any, change: bool) -> None:
        """Nothing of it can be changed here."""


@admin.register(Version)
class VersionAdmin(ReadOnlyAdmin):
    list_display = ("name", "spider", "short_digest", "created_at")
    list_select_related = ("spider",)
    search_fields = ("spider__name", "name")
    exclude = ("code",)
    ordering = ("-created_at", "-pk")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Version]:
        return super().get_queryset(request).defer("parameter_schema", "item_schema")

    @admin.display(description=_("digest"))
    def short_digest(self, version: Version) -> str:
        return version.digest[:12]
