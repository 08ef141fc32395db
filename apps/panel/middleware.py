"""Middleware of the pages."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_only_middleware


class PanelErrorMiddleware:
    """Turns an expected refusal into a message for the person."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)


@sync_only_middleware
def single_hop(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Last in the list: makes the whole chain run in one thread hop under ASGI."""
    return get_response
