"""What the sidebar offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
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
