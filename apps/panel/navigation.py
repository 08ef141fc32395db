"""What the sidebar offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True, slots=True)
class Entry:
    """`area` is the URL namespace whose pages light the entry up."""

    label: Any
    icon: str
    view: str
    area: str
    staff_only: bool = False


ENTRIES = (
    Entry(_("Runs"), "icon:activity", "runs:list", "runs"),
    Entry(_("Spiders"), "icon:spider", "spiders:list", "spiders"),
    Entry(_("Jobs"), "icon:list-details", "jobs:list", "jobs"),
    Entry(_("Schedules"), "icon:calendar-time", "schedules:list", "schedules"),
    Entry(_("Batches"), "icon:sitemap", "batches:list", "batches"),
    Entry(_("Nodes"), "icon:server-2", "nodes:list", "nodes"),
    Entry(_("Pools"), "icon:stack-2", "pools:list", "pools"),
    Entry(_("Admin"), "icon:settings", "admin:index", "admin", staff_only=True),
)


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """The entries this person may use, with the current one marked."""
    area = request.resolver_match.namespace if request.resolver_match else ""
    staff = bool(getattr(request.user, "is_staff", False))
    return [
        {"label": each.label, "icon": each.icon, "url": reverse(each.view), "current": each.area == area}
        for each in ENTRIES
        if staff or not each.staff_only
    ]


# (caption, (model label, Material symbol) …): the admin's own sidebar.
ADMIN_GROUPS: tuple[tuple[Any, tuple[tuple[str, str], ...]], ...] = (
    (
        _("Crawling"),
        (
            ("runs.run", "play_circle"),
            ("runs.batch", "account_tree"),
            ("jobs.job", "checklist"),
            ("spiders.spider", "bug_report"),
        ),
    ),
    (
        _("Structure"),
        (
            ("spiders.project", "folder"),
            ("spiders.version", "history"),
            ("runs.node", "dns"),
            ("runs.pool", "pool"),
            ("runs.placement", "tune"),
        ),
    ),
    (_("Doors"), (("jobs.hook", "webhook"), ("jobs.callhost", "public"))),
    (_("People"), (("accounts.user", "person"), ("auth.group", "group"), ("accounts.apitoken", "key"))),
    (
        _("Times"),
        (
            ("jobs.schedule", "event_repeat"),
            ("jobs.firing", "fact_check"),
            ("jobs.clock", "toggle_on"),
            ("jobs.dependency", "arrow_split"),
        ),
    ),
    (
        _("Periodic tasks"),
        (
            ("django_celery_beat.periodictask", "schedule"),
            ("django_celery_beat.crontabschedule", "calendar_month"),
            ("django_celery_beat.intervalschedule", "timer"),
            ("django_celery_beat.clockedschedule", "alarm"),
        ),
    ),
)


def admin_sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Only what this person may open there."""
    groups: list[dict[str, Any]] = [
        {"items": [{"title": _("To the panel"), "icon": "arrow_back", "link": reverse("panel:home")}]}
    ]
    for caption, models in ADMIN_GROUPS:
        items = [_admin_item(label, symbol) for label, symbol in models if _may_open(request, label)]
        if items:
            groups.append({"title": caption, "separator": True, "items": items})
    return groups


def _may_open(request: HttpRequest, label: str) -> bool:
    return admin.site.get_model_admin(apps.get_model(label)).has_module_permission(request)


def _admin_item(label: str, symbol: str) -> dict[str, Any]:
    model = apps.get_model(label)
    link = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    return {"title": capfirst(model._meta.verbose_name_plural), "icon": symbol, "link": link}
