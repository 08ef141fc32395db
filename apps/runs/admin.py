"""Runs, nodes and pools in the admin: to look at, and what may be done with them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.admin import ModelAdmin
from unfold.decorators import display

from apps.accounts.admin import ReadOnlyAdmin
from apps.accounts.rights import can, may_change
from apps.core.actors import person
from apps.core.admin import SuperuserOnly
from apps.core.errors import Forbidden
from apps.runs import actions as run_actions
from apps.runs import places, reasons
from apps.runs.models import Node, Placement, Pool, Run
from apps.runs.states import State, Trigger

_LABELS: dict[str, str] = {
    State.SUCCEEDED: "success",
    State.FAILED: "danger",
    State.TIMED_OUT: "warning",
    State.CANCELED: "warning",
    State.LOST: "danger",
    State.RUNNING: "info",
    State.STARTING: "info",
    State.STOPPING: "info",
}


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    list_display = ("id", "shown_state", "job_name", "spider", "trigger", "queued_at", "started_at", "items", "errors")
    list_display_links = ("id", "job_name")
    list_filter = ("state", "trigger")
    list_select_related = ("spider",)
    list_per_page = 50
    search_fields = ("=id", "job_name", "spider__name")
    ordering = ("-id",)
    readonly_fields = ("sentence",)
    actions = ("stop", "kill", "pause", "resume", "run_again")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        runs = super().get_queryset(request)
        return runs.defer("spec", "stats", "output", "detail") if _is_list(request) else runs

    def get_readonly_fields(self, request: HttpRequest, obj: Run | None = None) -> Any:
        """What a run made is data: it has a right of its own."""
        fields = super().get_readonly_fields(request, obj)
        hidden = () if obj is None or can(request.user, "view_data", obj) else ("output",)
        return [name for name in fields if name not in hidden]

    def get_exclude(self, request: HttpRequest, obj: Run | None = None) -> Any:
        return () if obj is None or can(request.user, "view_data", obj) else ("output",)

    def view_on_site(self, run: Run) -> str:
        return reverse("runs:detail", args=(run.pk,))

    @display(description=gettext_lazy("status"), ordering="state", label=_LABELS)  # type: ignore[arg-type]  # lazy text  # type: ignore[arg-type]  # lazy
    def shown_state(self, run: Run) -> tuple[str, str]:
        return run.state, run.get_state_display()

    @admin.display(description=gettext_lazy("why it ended"))
    def sentence(self, run: Run) -> str:
        return reasons.sentence(run) or "—"

    @admin.action(description=gettext_lazy("Stop"))
    def stop(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        self._each(request, runs, "stop", _("Asked to stop: %(runs)s."))

    @admin.action(description=gettext_lazy("Kill now"))
    def kill(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        self._each(request, runs, "kill", _("Being killed: %(runs)s."))

    @admin.action(description=gettext_lazy("Pause"))
    def pause(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        self._each(request, runs, "pause", _("Being paused: %(runs)s."))

    @admin.action(description=gettext_lazy("Resume"))
    def resume(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        self._each(request, runs, "resume", _("They go on: %(runs)s."))

    @admin.action(description=gettext_lazy("Run again"))
    def run_again(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        self._each(request, runs, "rerun", _("Queued again: %(runs)s."))

    def _each(self, request: HttpRequest, runs: QuerySet[Run], action: str, done_text: str) -> None:
        """The chosen runs by id; those the person may not act on and those that refuse are named, the others done."""
        outcomes = run_actions.perform_on_all(
            action,
            user=request.user,
            ids=list(runs.order_by("pk").values_list("pk", flat=True)),
            by=person(request.user),
            now=timezone.now(),
            trigger=Trigger.MANUAL,
        )
        for outcome in outcomes:
            if outcome.error is not None:
                level = messages.ERROR if outcome.error.status == Forbidden.status else messages.WARNING
                self.message_user(request, outcome.error.message, level)
        if done := [f"#{outcome.id}" for outcome in outcomes if outcome.error is None]:
            self.message_user(request, done_text % {"runs": ", ".join(done)}, messages.SUCCESS)


def _is_list(request: HttpRequest) -> bool:
    return bool(request.resolver_match and request.resolver_match.url_name == "runs_run_changelist")


class _Noted(ModelAdmin):
    """What belongs to the whole panel is changed by services, and they keep the log of changes."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_change(request.user, self.model)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return may_change(request.user, self.model)

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return None

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return None

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        return None


@admin.register(Node)
class NodeAdmin(_Noted):
    """Workers make and keep these rows themselves."""

    list_display = ("name", "executor", "isolated", "slots", "heartbeat_at", "cordoned_at", "drain_until", "trouble")
    ordering = ("name",)
    actions = ("cordon", "uncordon", "drain")

    def view_on_site(self, node: Node) -> str:
        return reverse("nodes:detail", args=(node.pk,))

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.action(description=gettext_lazy("Close for new runs"))
    def cordon(self, request: HttpRequest, nodes: QuerySet[Node]) -> None:
        self._each(request, nodes, places.cordon)

    @admin.action(description=gettext_lazy("Open for new runs"))
    def uncordon(self, request: HttpRequest, nodes: QuerySet[Node]) -> None:
        self._each(request, nodes, places.uncordon)

    @admin.action(description=gettext_lazy("Drain within 30 minutes"))
    def drain(self, request: HttpRequest, nodes: QuerySet[Node]) -> None:
        self._each(request, nodes, places.drain, within=timedelta(minutes=30))

    def _each(self, request: HttpRequest, nodes: QuerySet[Node], change: Callable[..., None], **values: Any) -> None:
        for node in nodes.order_by("pk"):
            change(node=node, by=person(request.user), now=timezone.now(), **values)
        self.message_user(request, _("Done."), messages.SUCCESS)


@admin.register(Pool)
class PoolAdmin(_Noted):
    list_display = ("name", "limit", "description")
    search_fields = ("name",)
    ordering = ("name",)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return may_change(request.user, Pool, "add")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_change(request.user, Pool)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_change(request.user, Pool, "delete")

    def save_model(self, request: HttpRequest, obj: Pool, form: Any, change: bool) -> None:
        values: dict[str, Any] = {name: getattr(obj, name) for name in ("name", "limit", "description")}
        by, now = person(request.user), timezone.now()
        if change:
            places.update_pool(pool=obj, by=by, now=now, **values)
        else:
            obj.pk = places.create_pool(by=by, now=now, **values).pk

    def delete_model(self, request: HttpRequest, obj: Pool) -> None:
        """Jobs that use it refuse; the panel's own page can take them out of it."""
        places.delete_pool(pool=obj, by=person(request.user), now=timezone.now())

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Pool]) -> None:
        for pool in queryset.order_by("pk"):
            self.delete_model(request, pool)


@admin.register(Placement)
class PlacementAdmin(SuperuserOnly, _Noted):
    """The limit over all nodes; maintenance is begun and ended on the page of nodes."""

    list_display = ("__str__", "max_running", "maintenance_since", "maintenance_by", "maintenance_why")
    fields = ("max_running", "maintenance_since", "maintenance_by", "maintenance_why")
    readonly_fields = ("maintenance_since", "maintenance_by", "maintenance_why")

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return self._is_superuser(request) and not Placement.objects.exists()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Placement, form: Any, change: bool) -> None:
        places.set_max_running(by=person(request.user), now=timezone.now(), most=obj.max_running)
