"""Short transactions of the clock: whoever is frozen in one loses its locks within seconds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db import connection, transaction

logger = logging.getLogger(__name__)

Hook = Callable[[], object]

# Below the second after which the server looks for deadlocks: it is the clock that gives way, and tries again.
LOCK_MS = 700
IDLE_MS = 1500
STATEMENT_MS = 10_000
WHOLE_MS = 15_000
_KNOWS_WHOLE = 17_00_00


def run_hooks(hooks: list[Hook]) -> None:
    for hook in hooks:
        try:
            hook()
        except Exception:
            logger.exception("what follows a due time failed; sweeps make up for it")


def is_connected() -> bool:
    """Otherwise whatever failed did so because the database has gone, or has dropped this session."""
    return connection.connection is not None and not connection.connection.closed


@contextmanager
def short_transaction(after_commit: Callable[[list[Hook]], None] = run_hooks) -> Iterator[datetime]:
    """Yields the time by the clock of the database.

    What was to be done after the commit (hints to the broker) is handed to `after_commit` instead of being done at
    once: the clock waits for nobody.
    """
    is_own = not connection.in_atomic_block
    hooks = len(connection.run_on_commit)
    with transaction.atomic():
        yield _begun(is_own)
        found: list[Hook] = [entry[1] for entry in connection.run_on_commit[hooks:]]
        del connection.run_on_commit[hooks:]
        if found:
            transaction.on_commit(lambda: after_commit(found))


def _begun(is_own: bool) -> datetime:
    limits = {}
    if is_own:
        limits = {"lock_timeout": LOCK_MS, "idle_in_transaction_session_timeout": IDLE_MS}
        limits["statement_timeout"] = STATEMENT_MS
        if connection.connection.info.server_version >= _KNOWS_WHOLE:
            limits["transaction_timeout"] = WHOLE_MS
    settings = "".join(", set_config(%s, %s, true)" for _name in limits)
    values = [text for name, most in limits.items() for text in (name, f"{most}ms")]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT clock_timestamp(){settings}", values)
        now: datetime = cursor.fetchone()[0]
    return now
