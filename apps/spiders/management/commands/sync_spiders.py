"""Register the spiders of a folder: `manage.py sync_spiders [FOLDER]`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from apps.spiders.registry import FILE_NAME, read_registry
from apps.spiders.services import SyncReport, sync_registry


class Command(BaseCommand):
    help = (
        f"Check {FILE_NAME} in a folder and register the valid spiders. Prints each fault as file:line: reason; the "
        "exit code is 1 when there is one."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", nargs="?", type=Path, default=Path(settings.CLAWPANEL_SPIDER_REPO))
        parser.add_argument("--check", action="store_true", help="only check the registry, register nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        folder: Path = options["folder"]
        if options["check"]:
            reading = read_registry(folder)
            report = SyncReport(faults=reading.faults)
            summary = f"{len(reading.entries)} valid"
        else:
            report = sync_registry(folder=folder, now=timezone.now())
            counts = (("new", report.created), ("changed", report.updated), ("unchanged", report.unchanged))
            summary = ", ".join(f"{len(names)} {word}" for word, names in counts)
        for fault in report.faults:
            self.stdout.write(str(fault))
        self.stdout.write(f"{folder}: {summary}, {len(report.faults)} faults")
        if report.faults:
            sys.exit(1)
