"""What another machine has to be told so that it becomes a node of this panel."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from clawpanel import env


class Command(BaseCommand):
    help = "Print the variables a second node needs. They hold passwords and keys: hand them on as such."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def handle(self, *args: Any, **options: Any) -> None:
        shared = {
            "DATABASE_URL": env.DATABASE_URL,
            "REDIS_URL": env.REDIS_URL,
            "CLAWPANEL_BROKER_URL": env.BROKER_URL,
            "CLAWPANEL_INSTALL": settings.CLAWPANEL_INSTALL,
            "CLAWPANEL_ENCRYPTION_KEYS": ",".join(settings.ENCRYPTION_KEYS),
        }
        for name, value in shared.items():
            if value:
                self.stdout.write(f"{name}={value}")
        embedded = [name for name in ("DATABASE_URL", "REDIS_URL") if not shared[name]]
        if embedded:
            self.stderr.write(
                f"{' and '.join(embedded)}: this panel uses its embedded server, which no other machine can reach. "
                "Give it servers of your own first (docs/deployment.md)."
            )
