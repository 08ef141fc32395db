"""Whether this machine can be a node of the panel whose URLs it was given. Changes nothing, may be repeated."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from clawpanel import env
from clawpanel.up import checks, engine, first_start, joining, services


class Command(BaseCommand):
    help = "Check that this machine can join: database, broker, version, keys, name, labels."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--result",
            type=Path,
            help="for deploy/node: also choose the executor, build its image, and write what was found out as JSON",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        checks.shared_settings()
        name = services.node_name()
        checks.database_answers(env.DATABASE_URL)
        first_start.broker_answers()
        if warning := joining.same_version(name):
            self.say(warning)
        joining.same_keys()
        joining.free_name(name)
        joining.good_labels()
        if options["result"]:
            choice = engine.choose(self.say)
            found = {"executor": choice.executor, "why": choice.why, "demo_host": choice.demo_host}
            options["result"].write_text(json.dumps(found))

    def say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()
