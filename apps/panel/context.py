"""What every page's frame needs; anything that asks the database is asked only when the frame is drawn."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from apps.jobs.selectors import clock
from apps.jobs.selectors.lateness import schedules_late
from apps.panel.navigation import sidebar
from apps.runs import selectors

THEMES = ("system", "light", "dark")
THEME_COOKIE = "claw_theme"


def theme_of(request: HttpRequest) -> str:
    """The signed-in person's choice, else the browser's cookie."""
    chosen = getattr(request.user, "theme", "") if hasattr(request, "user") else ""
    chosen = chosen or request.COOKIES.get(THEME_COOKIE, "")
    return chosen if chosen in THEMES else "system"


def frame(request: HttpRequest) -> dict[str, Any]:
    return {
        "theme": theme_of(request),
        "time_zone": timezone.get_current_timezone_name(),
        "sidebar": SimpleLazyObject(lambda: sidebar(request)),
        "maintenance": SimpleLazyObject(selectors.maintenance),
        "scheduling": SimpleLazyObject(clock),
        "scheduler_late": SimpleLazyObject(lambda: schedules_late(timezone.now()) or timedelta()),
        "node_health": SimpleLazyObject(lambda: selectors.node_health(now=timezone.now())),
    }
