"""Batches and dependencies in the admin: to look at. They are changed on their pages, where circles are refused."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.accounts.admin import ReadOnlyAdmin
from apps.accounts.rights import allowed
from apps.core.actors import person
from apps.core.errors import PanelError
from apps.jobs.models import Dependency, Job
from apps.jobs.services.batches import stop_batch
from apps.runs.models import Batch


@admin.register(Dependency)
class DependencyAdmin(ReadOnlyAdmin):
    list_display = ("id", "job", "upstream", "condition")
    list_select_related = ("job", "upstream")
    list_filter = ("condition",)
    search_fields = ("job__name", "upstream__name")
    ordering = ("job__name", "pk")

    def view_on_site(self, dependency: Dependency) -> str:
        return reverse("jobs:detail", args=(dependency.job_id,))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Both ends must be seen: each row names both."""
        return super().get_queryset(request).filter(upstream__in=allowed(request.user, "view", Job))


@admin.register(Batch)
class BatchAdmin(ReadOnlyAdmin):
    list_display = ("id", "kind", "job_name", "name", "trigger", "actor", "created_at", "canceled_at", "finished_at")
    list_display_links = ("id", "job_name")
    list_filter = ("kind", "trigger")
    search_fields = ("=id", "job_name", "name")
    ordering = ("-id",)
    # It names jobs that not everybody may see who may see the batch.
    exclude = ("graph",)
    actions = ("stop",)

    def view_on_site(self, batch: Batch) -> str:
        return reverse("batches:detail", args=(batch.pk,))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [name for name in super().get_readonly_fields(request, obj) if name != "graph"]

    @admin.action(description=gettext_lazy("Stop"))
    def stop(self, request: HttpRequest, chosen: QuerySet[Batch]) -> None:
        permitted = set(allowed(request.user, "stop", Batch).filter(pk__in=chosen).values_list("pk", flat=True))
        for batch in chosen.order_by("pk"):
            if batch.pk not in permitted:
                self.message_user(request, _("You may not stop batch %(id)s.") % {"id": batch.pk}, messages.ERROR)
                continue
            try:
                stop_batch(batch=batch, by=person(request.user), now=timezone.now())
            except PanelError as error:
                self.message_user(request, error.message, messages.WARNING)
            else:
                message = _("Batch %(id)s is being stopped.") % {"id": batch.pk}
                self.message_user(request, message, messages.SUCCESS)
