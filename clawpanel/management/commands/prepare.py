"""What has to be true before the panel's processes start. Everything in it may be repeated without harm."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from clawpanel import env
from clawpanel.up import engine, first_start


class Command(BaseCommand):
    help = "Bring the database up to date, make the administrator, register the spiders."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--result",
            type=Path,
            help="for `up`: also choose the executor, ask for the sample run, and write what was found out as JSON",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        first_start.broker_answers()
        first_start.migrate(self.say)
        password = first_start.administrator(name=env.ADMIN_USER, password=env.ADMIN_PASSWORD)
        first_start.register_spiders(folder=env.SPIDER_REPO, now=timezone.now(), say=self.say)
        if options["result"]:
            self.prepare_up(options["result"], password)
        elif password:
            self.say(f"user {env.ADMIN_USER}, password {password} (shown only now: keep it)")

    def prepare_up(self, result: Path, password: str) -> None:
        choice = engine.choose(self.say)
        sample = first_start.make_sample_run(now=timezone.now())
        found = {
            "executor": choice.executor,
            "why": choice.why,
            "demo_host": choice.demo_host,
            "user": first_start.administrator_name(env.ADMIN_USER),
            "password": password,
            "sample_run": sample.pk if sample else None,
        }
        result.touch(mode=0o600)
        result.write_text(json.dumps(found))

    def say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()
