"""Webhooks in the admin: to look at and to revoke. They are made where their address can be shown once."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.accounts.admin import RightsAdmin
from apps.core.actors import person
from apps.jobs.models import Hook
from apps.jobs.selectors.hooks import visible_hooks
from apps.jobs.services import hooks

_SHOWN = (
    *("job", "name", "kind", "token_prefix", "mapping", "per_minute"),
    *("created_by", "created_at", "last_used_at", "revoked_at"),
)


@admin.register(Hook)
class HookAdmin(RightsAdmin):
    list_display = ("name", "job", "kind", "token_prefix", "per_minute", "created_by", "last_used_at", "revoked_at")
    list_select_related = ("job", "created_by")
    search_fields = ("name", "job__name")
    ordering = ("job__name", "name", "pk")
    # Not what opens them, though both are useless as they are stored.
    fields = _SHOWN
    readonly_fields = _SHOWN
    actions = ("revoke",)

    def view_on_site(self, hook: Hook) -> str:
        return reverse("jobs:hooks", args=(hook.job_id,))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return visible_hooks(request.user).order_by(*self.ordering)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may(request, "schedule", obj)

    @admin.action(description=gettext_lazy("Revoke"))
    def revoke(self, request: HttpRequest, chosen: QuerySet[Hook]) -> None:
        for hook in visible_hooks(request.user).filter(pk__in=chosen.values("pk")):
            hooks.revoke_hook(hook=hook, by=person(request.user), now=timezone.now())
        self.message_user(request, _("Done."), messages.SUCCESS)
