"""The product's application, on demand without the synchronous-only middleware whose worth is measured."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "clawpanel.settings")

from django.conf import settings

# Each of these makes the chain around it run in one thread hop.
SYNC_ONLY = {
    "WhiteNoiseMiddleware",
    "LoosePolicyMiddleware",
    "PreferencesMiddleware",
    "PanelErrorMiddleware",
    "single_hop",
}
if os.environ.get("CLAW_BENCH_MANY_HOPS"):
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if name.rpartition(".")[2] not in SYNC_ONLY]

from clawpanel.asgi import application  # noqa: E402 (built from the settings changed above)

__all__ = ["application"]
