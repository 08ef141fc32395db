"""Schedules and their ledger in the admin. They are edited on their pages, or as the tasks of beat that they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.admin import ModelAdmin

from apps.accounts.admin import ReadOnlyAdmin
from apps.core.actors import person
from apps.core.admin import SuperuserOnly
from apps.core.errors import PanelError
from apps.jobs import reasons, selectors
from apps.jobs.models import Clock, Firing, Schedule
from apps.jobs.services import schedules as services
from apps.jobs.timing import BadRule, words


@admin.register(Schedule)
class ScheduleAdmin(ReadOnlyAdmin):
    delete_right = "schedule"
    list_display = ("number", "job", "name", "in_words", "timezone", "enabled", "next_slot_at", "paused_at", "trouble")
    list_display_links = ("number",)
    list_select_related = ("job",)
    list_filter = ("type", "enabled", "misfire")
    search_fields = ("name", "job__name")
    ordering = ("pk",)
    readonly_fields = ("in_words",)
    fields = (
        *(
            "job",
            "name",
            "in_words",
            "type",
            "expression",
            "typed",
            "every_seconds",
            "anchor_at",
            "once_at",
            "timezone",
        ),
        *("start_at", "end_at", "enabled", "next_slot_at", "trouble", "task", "parameters", "jitter_seconds"),
        *("misfire", "misfire_grace_seconds", "misfire_cap", "misfire_spacing_seconds"),
        *("paused_at", "paused_until", "paused_by", "paused_why", "created_by", "created_at", "updated_at"),
    )
    actions = ("enable", "disable", "resume")

    def view_on_site(self, schedule: Schedule) -> str:
        return reverse("jobs:detail", args=(schedule.job_id,))

    @admin.display(description=gettext_lazy("number"), ordering="pk")
    def number(self, schedule: Schedule) -> int:
        return int(schedule.pk)

    @admin.display(description=gettext_lazy("in words"))
    def in_words(self, schedule: Schedule) -> str:
        try:
            return words(selectors.rule_for(schedule))
        except BadRule as error:
            return error.message

    def delete_model(self, request: HttpRequest, obj: Schedule) -> None:
        services.delete_schedule(schedule=obj, by=person(request.user), now=timezone.now())

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        for schedule in queryset.order_by("pk"):
            self.delete_model(request, schedule)

    @admin.action(description=gettext_lazy("Switch on"))
    def enable(self, request: HttpRequest, chosen: QuerySet[Schedule]) -> None:
        self._each(request, chosen, services.set_enabled, enabled=True)

    @admin.action(description=gettext_lazy("Switch off"))
    def disable(self, request: HttpRequest, chosen: QuerySet[Schedule]) -> None:
        self._each(request, chosen, services.set_enabled, enabled=False)

    @admin.action(description=gettext_lazy("Resume"))
    def resume(self, request: HttpRequest, chosen: QuerySet[Schedule]) -> None:
        self._each(request, chosen, services.resume_schedule)

    def _each(
        self, request: HttpRequest, chosen: QuerySet[Schedule], change: Callable[..., Schedule], **values: Any
    ) -> None:
        ids = chosen.values("pk")
        permitted = set(selectors.visible_schedules(request.user, "schedule").filter(pk__in=ids).values_list("pk"))
        for schedule in selectors.visible_schedules(request.user).filter(pk__in=ids):
            if (schedule.pk,) not in permitted:
                message = _("You may not schedule this job.")
                self.message_user(request, f"{schedule.job}: {message}", messages.ERROR)
                continue
            try:
                change(schedule=schedule, by=person(request.user), now=timezone.now(), **values)
            except PanelError as error:
                self.message_user(request, f"{schedule.job}: {error.message}", messages.ERROR)
        self.message_user(request, _("Done."), messages.SUCCESS)


@admin.register(Firing)
class FiringAdmin(ReadOnlyAdmin):
    list_display = ("scheduled_for", "job", "schedule", "outcome", "why", "run")
    list_select_related = ("job", "schedule", "run")
    list_filter = ("outcome", "reason")
    # By its number: of all due times together there is no index by time.
    ordering = ("-pk",)
    readonly_fields = ("why",)
    fields = ("job", "schedule", "scheduled_for", "until", "times", "outcome", "why", "run", "decided_at", "detail")

    @admin.display(description=gettext_lazy("why"))
    def why(self, firing: Firing) -> str:
        return reasons.sentence(firing)


@admin.register(Clock)
class ClockAdmin(SuperuserOnly, ModelAdmin):
    """To look at; it is switched on the pages of schedules."""

    list_display = ("__str__", "off_since", "off_by", "off_why", "seen_at")

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
