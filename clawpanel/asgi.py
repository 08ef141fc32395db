"""One ASGI application: pages and API over HTTP, live logs over websockets."""

from __future__ import annotations

import os

from channels.routing import ProtocolTypeRouter
from channels.sessions import SessionMiddlewareStack
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "clawpanel.settings")
pool_is_ours = "CLAWPANEL_DATABASE_POOL" not in os.environ
os.environ.setdefault("CLAWPANEL_DATABASE_POOL", "10")
http = get_asgi_application()
if pool_is_ours:
    # Read by now. A worker started from this process must not inherit it: it has more threads than the pool has places.
    del os.environ["CLAWPANEL_DATABASE_POOL"]

from clawpanel import body_limit, masking, pacing  # noqa: E402
from clawpanel.routing import SameOrigin, websocket  # noqa: E402 (models must be ready first)

pacing.install()
body_limit.install()
masking.install()
application = ProtocolTypeRouter({"http": http, "websocket": SameOrigin(SessionMiddlewareStack(websocket))})
