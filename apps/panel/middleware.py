"""Middleware of the pages."""

from __future__ import annotations

import contextlib
import zoneinfo
from collections.abc import Callable

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone, translation
from django.utils.decorators import sync_only_middleware
from django.utils.translation import gettext as _

from apps.core.addresses import where_from
from apps.core.errors import PanelError

GetResponse = Callable[[HttpRequest], HttpResponse]


class PanelErrorMiddleware:
    """Turns an expected refusal into a message for the person; the REST API has its own shape for them."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, PanelError) or request.path.startswith("/api/"):
            return None
        sentences = [error.message, *(f"{name}: {text}" for name, texts in error.fields.items() for text in texts)]
        if getattr(request, "htmx", False):
            return _for_htmx(request, sentences, error.status)
        if request.method == "POST":
            for sentence in sentences:
                messages.error(request, sentence)
            return redirect(where_from(request))
        return refusal(request, sentences, error.status)


def refusal(request: HttpRequest, sentences: list[str], status: int) -> HttpResponse:
    title = _("Not found") if status == 404 else _("That did not work")
    return render(request, "refused.html", {"refused_title": title, "sentences": sentences}, status=status)


def _for_htmx(request: HttpRequest, sentences: list[str], status: int) -> HttpResponse:
    """Shown in the page's message area, whatever the request wanted to replace."""
    for sentence in sentences:
        messages.error(request, sentence)
    response = render(request, "components/_messages.html", status=status)
    response["HX-Retarget"] = "#messages"
    response["HX-Reswap"] = "innerHTML show:window:top"
    return response


class LoosePolicyMiddleware:
    """What the strict policy leaves out still gets one: what was slipped into such a page cannot report elsewhere."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.path_info.startswith(settings.CLAWPANEL_LOOSE_PAGES):
            response.headers.setdefault("Content-Security-Policy", settings.CLAWPANEL_LOOSE_POLICY)
        return response


class PreferencesMiddleware:
    """Language and time zone the signed-in person has chosen, on whatever device."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        user = request.user
        if user.is_authenticated:
            if user.language in dict(settings.LANGUAGES):
                translation.activate(user.language)
                request.LANGUAGE_CODE = user.language
            if user.time_zone:
                # A zone this machine does not know must not cost the page.
                with contextlib.suppress(zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
                    timezone.activate(zoneinfo.ZoneInfo(user.time_zone))
        try:
            return self.get_response(request)
        finally:
            timezone.deactivate()


@sync_only_middleware
def single_hop(get_response: GetResponse) -> GetResponse:
    """Last in the list: makes the whole chain run in one thread hop under ASGI."""
    return get_response
