"""Whether this panel can do its work right now."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

import redis
from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.utils import DatabaseError

from apps.core import valkey
from apps.core.background import broker_answers
from apps.runs import selectors

logger = logging.getLogger(__name__)
OK = "ok"


def readiness(*, now: datetime) -> dict[str, str]:
    """Each check by name, `ok` or what is wrong with it. Anybody may ask: no addresses and no versions in here."""
    checks: dict[str, Callable[[], str]] = {
        "database": _database,
        "migrations": _migrations,
        "broker": _broker,
        "worker": lambda: _worker(now),
    }
    answers: dict[str, str] = {}
    for name, check in checks.items():
        try:
            answers[name] = check()
        except (DatabaseError, redis.RedisError, OSError) as error:
            logger.warning("readiness: %s does not answer: %s", name, error)
            answers[name] = "does not answer"
    return answers


def _database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return OK


def _migrations() -> str:
    executor = MigrationExecutor(connection)
    waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return f"{len(waiting)} not applied" if waiting else OK


def _broker() -> str:
    client = valkey.client(settings.REDIS_URL, socket_connect_timeout=2, socket_timeout=2)
    try:
        client.ping()
    finally:
        client.close()
    return OK if broker_answers() else "does not answer"


def _worker(now: datetime) -> str:
    return "none has reported for 30 seconds" if selectors.node_health(now=now).no_worker else OK
