"""Websocket addresses, and who may open them from where."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from channels.routing import URLRouter
from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.urls import path

from apps.runs.consumers import LogConsumer, RunsConsumer

websocket_urlpatterns = [
    path("ws/runs/", RunsConsumer.as_asgi()),
    path("ws/runs/<int:run_id>/log/", LogConsumer.as_asgi()),
    path("<path:unknown>", WebsocketDenier.as_asgi()),
]


class SameOrigin:
    """Refuses a socket that another site's page opens with the visitor's cookies.

    Channels' own check trusts ALLOWED_HOSTS, which is "*" unless set; the rule of Django's CSRF check holds always:
    the origin is the host that was asked, or one of CSRF_TRUSTED_ORIGINS. Programs send no Origin and no cookies.
    """

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        headers = dict(scope.get("headers", ()))
        if self.trusted(headers.get(b"origin"), headers.get(b"host", b"")):
            return await self.application(scope, receive, send)
        return await WebsocketDenier()(scope, receive, send)

    @staticmethod
    def trusted(origin: bytes | None, host: bytes) -> bool:
        if origin is None:
            return True
        text = origin.decode("latin1")
        return urlsplit(text).netloc == host.decode("latin1") or text in settings.CSRF_TRUSTED_ORIGINS


websocket = URLRouter(websocket_urlpatterns)
