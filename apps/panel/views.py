"""Pages that belong to no app: the way in, preferences and health."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST, require_safe

from apps.accounts import services
from apps.core.addresses import where_from
from apps.panel import health
from apps.panel.context import THEME_COOKIE, THEMES

YEAR_SECONDS = 365 * 24 * 3600


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    return redirect("runs:list")


@require_POST
def preferences(request: HttpRequest) -> HttpResponse:
    """Language and theme: kept with the person when signed in, and in the browser for the sign-in page."""
    language, theme = request.POST.get("language", ""), request.POST.get("theme", "")
    language = language if language in dict(settings.LANGUAGES) else ""
    theme = theme if theme in THEMES else ""
    response = redirect(where_from(request))
    for name, value in ((settings.LANGUAGE_COOKIE_NAME, language), (THEME_COOKIE, theme)):
        if value:
            response.set_cookie(name, value, max_age=YEAR_SECONDS, samesite="Lax", secure=request.is_secure())
    if request.user.is_authenticated and (language or theme):
        services.keep_preferences(user=request.user, language=language, theme=theme)
    return response


@require_GET
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """This process answers; nothing else is asked."""
    return JsonResponse({"status": "ok"})


@require_GET
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    checks = health.readiness(now=timezone.now())
    ready = all(answer == health.OK for answer in checks.values())
    response = JsonResponse({"status": "ok" if ready else "not ready", "checks": checks}, status=200 if ready else 503)
    # Not ready is an answer and no error: Django would log one for each look of whoever waits for us.
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response
