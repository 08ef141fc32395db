"""The product's application, on demand without the middleware whose worth is measured."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "clawpanel.settings")

from django.conf import settings

if os.environ.get("CLAW_BENCH_MANY_HOPS"):
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if not name.endswith("single_hop")]

from clawpanel.asgi import application

__all__ = ["application"]
