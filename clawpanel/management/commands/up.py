"""Start the whole panel on this machine and stay in the foreground."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Start PostgreSQL, Valkey, web, worker and beat on this machine, in the foreground."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def handle(self, *args: Any, **options: Any) -> None:
        # The same process goes on without Django: a supervisor that stays for weeks should weigh little.
        os.execv(sys.executable, [sys.executable, "-m", "clawpanel.up"])  # noqa: S606
