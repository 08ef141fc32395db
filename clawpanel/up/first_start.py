"""What a new panel needs before somebody can use it. Every step may be repeated without harm."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import redis
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from apps.accounts.models import User
from apps.core import background, valkey
from apps.core.actors import SYSTEM
from apps.jobs import services as jobs
from apps.jobs.models import Job
from apps.runs.models import Run
from apps.runs.states import Trigger
from apps.spiders import services as spiders
from apps.spiders.models import Spider
from clawpanel import env
from clawpanel.refusal import CannotStart

SAMPLE_SPIDER = "quotes"


def broker_answers() -> None:
    """The server of REDIS_URL, and Celery's where that is another."""
    try:
        client = valkey.client(settings.REDIS_URL, socket_connect_timeout=5, socket_timeout=5)
        client.ping()
        client.close()
    except (redis.RedisError, ValueError, OSError) as error:
        raise CannotStart(f"The server of REDIS_URL does not answer: {str(error).strip()}") from error
    if env.BROKER_URL and not background.broker_answers():
        raise CannotStart("The broker of CLAWPANEL_BROKER_URL does not answer.")


def migrate(say: Callable[[str], None]) -> None:
    try:
        executor = MigrationExecutor(connection)
        waiting = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
        if waiting:
            say(f"bringing the database up to date ({waiting} migrations)")
            call_command("migrate", verbosity=0, interactive=False)
    except DatabaseError as error:
        raise CannotStart(f"The database could not be brought up to date: {str(error).strip()}") from error


def administrator(*, name: str, password: str) -> str:
    """Make the first superuser; returns the generated password, or nothing when there is one already."""
    if User.objects.filter(is_superuser=True, is_active=True).exists():
        return ""
    chosen = password or secrets.token_urlsafe(12)
    User.objects.create_superuser(username=name, email="", password=chosen)
    return "" if password else chosen


def administrator_name(wanted: str) -> str:
    """Who to sign in as: the wanted name when there is such a superuser, else the oldest."""
    admins = User.objects.filter(is_superuser=True, is_active=True).order_by("pk")
    return wanted if admins.filter(username=wanted).exists() else str(admins.values_list("username", flat=True)[0])


def register_spiders(*, folder: Path, now: datetime, say: Callable[[str], None]) -> None:
    """Faults are warnings: a broken spider does not keep the others from being used."""
    report = spiders.sync_registry(folder=folder, now=now)
    for fault in report.faults:
        say(f"{fault}")


@transaction.atomic
def make_sample_run(*, now: datetime) -> Run | None:
    """In a panel that never had a job: one sample job, run once, so that there is something to look at."""
    if Job.objects.exists() or Run.objects.exists():
        return None
    spider = Spider.objects.filter(name=SAMPLE_SPIDER).order_by("pk").first()
    admin = User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if spider is None or admin is None:
        return None
    job = jobs.create_job(by=admin, now=now, spider=spider, name="Sample: quotes", parameters={})
    run, _ = jobs.run_job(job=job, by=SYSTEM, now=timezone.now(), trigger=Trigger.SYSTEM)
    return run
