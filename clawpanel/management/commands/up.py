"""Start the whole panel on this machine and stay in the foreground."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand

from clawpanel.up.start import Panel

COLOURS = {"up": 1, "web": 36, "worker": 32, "beat": 35, "demo": 33, "postgres": 34, "valkey": 31}
NAME_WIDTH = 8


class Command(BaseCommand):
    help = "Start PostgreSQL, Valkey, web, worker and beat on this machine, in the foreground."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def handle(self, *args: Any, **options: Any) -> None:
        self.coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ  # noqa: TID251 (a terminal's convention)
        code = Panel(say=self.say).run()
        if code:
            sys.exit(code)

    def say(self, who: str, text: str) -> None:
        label = f"{who:<{NAME_WIDTH}}|"
        if self.coloured:
            label = f"\x1b[{COLOURS.get(who, 0)}m{label}\x1b[0m"
        try:
            self.stdout.write(f"{label} {text}")
            self.stdout.flush()
        except OSError:
            pass  # the terminal is gone; the panel goes on
