"""How the database is connected to."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

# Whoever is frozen inside a transaction (SIGSTOP, a suspended machine) would keep its locks, and with them every run
# and job it has just touched, from all others: the server ends such a session when a lease would have run out too.
IDLE_IN_TRANSACTION_SECONDS = 20


def from_url(url: str, *, pool: int) -> dict[str, Any]:
    """Django's settings for a PostgreSQL URL; the host may be a percent-encoded socket folder.

    `pool` is the most connections a process keeps for all of its threads, 0 means one for each thread.
    """
    parts = urlsplit(url)
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    idle = f"-c idle_in_transaction_session_timeout={IDLE_IN_TRANSACTION_SECONDS}s"
    options: dict[str, Any] = {"connect_timeout": 5, "application_name": "clawpanel"}
    if pool:
        options["pool"] = {"min_size": 1, "max_size": pool, "timeout": 10}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")) or "clawpanel",
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": query.pop("host", None)
        or unquote(parts.netloc.rpartition("@")[2].rpartition(":")[0])
        or unquote(parts.hostname or ""),
        "PORT": parts.port or "",
        # Workers and beat keep one connection a thread. Under ASGI every request has a thread of its own, and
        # connections kept by threads that are gone would pile up: there they come from a pool.
        "CONN_MAX_AGE": 0 if pool else 60,
        "CONN_HEALTH_CHECKS": True,
        # Of an option given twice the last counts: what the URL says.
        "OPTIONS": {**options, **query, "options": f"{idle} {query.get('options', '')}".strip()},
    }
