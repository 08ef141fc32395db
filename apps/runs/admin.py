"""Runs and nodes in the admin: to look at, to stop and to run again."""

from __future__ import annotations

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
from apps.accounts.rights import allowed, can
from apps.core.actors import person
from apps.core.admin import SuperuserOnly
from apps.core.errors import PanelError
from apps.runs import reasons, services
from apps.runs.models import Node, Run
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
    actions = ("stop", "run_again")

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

    @admin.action(description=gettext_lazy("Run again"))
    def run_again(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        self._each(request, runs, "run", _("Queued again: %(runs)s."))

    def _each(self, request: HttpRequest, runs: QuerySet[Run], right: str, done_text: str) -> None:
        """The chosen runs by id; those the person may not act on and those that refuse are named, the others done."""
        permitted = set(allowed(request.user, right, Run).filter(pk__in=runs).values_list("pk", flat=True))
        done = []
        for run in runs.order_by("pk"):
            if run.pk not in permitted:
                self.message_user(request, _("You may not do this with run %(id)s.") % {"id": run.pk}, messages.ERROR)
                continue
            try:
                self._act(right, run, request.user)
            except PanelError as error:
                self.message_user(request, error.message, messages.WARNING)
            else:
                done.append(f"#{run.pk}")
        if done:
            self.message_user(request, done_text % {"runs": ", ".join(done)}, messages.SUCCESS)

    @staticmethod
    def _act(right: str, run: Run, user: Any) -> None:
        now = timezone.now()
        if right == "stop":
            services.request_stop(run=run, by=person(user), now=now)
        else:
            services.rerun(run=run, by=person(user), now=now, trigger=Trigger.MANUAL)


def _is_list(request: HttpRequest) -> bool:
    return bool(request.resolver_match and request.resolver_match.url_name == "runs_run_changelist")


@admin.register(Node)
class NodeAdmin(SuperuserOnly, ModelAdmin):
    """Workers make and keep these rows themselves."""

    list_display = ("name", "executor", "isolated", "slots", "heartbeat_at", "cordoned_at", "trouble")
    ordering = ("name",)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
