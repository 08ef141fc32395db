"""One ASGI application: pages and API over HTTP, live logs over websockets."""

from __future__ import annotations

import os

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "clawpanel.settings")
http = get_asgi_application()

from clawpanel.routing import websocket_urlpatterns  # noqa: E402 (models must be ready first)

application = ProtocolTypeRouter({"http": http, "websocket": AuthMiddlewareStack(URLRouter(websocket_urlpatterns))})
