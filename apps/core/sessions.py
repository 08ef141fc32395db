"""Sessions of the database that nobody will ever go on with."""

from __future__ import annotations

import logging

from django.db import connection

logger = logging.getLogger(__name__)

# Content of a COPY lies ready in memory when it begins: who has not sent it by then was frozen in the middle.
COPY_SECONDS = 20
_STUCK = """
SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
  AND state = 'active' AND wait_event = 'ClientRead' AND query ILIKE 'COPY %%FROM STDIN%%'
  AND query_start < now() - %s * interval '1 second'
"""


def end_stuck_copies(*, seconds: float = COPY_SECONDS) -> int:
    """End the sessions of our user that hold locks within a COPY whose sender is frozen. Returns how many.

    PostgreSQL's own limits (idle_in_transaction_session_timeout, statement_timeout, transaction_timeout) do not
    interrupt a COPY that waits for its client.
    """
    with connection.cursor() as cursor:
        cursor.execute(_STUCK, [seconds])
        ended = [pid for pid, done in cursor.fetchall() if done]
    for pid in ended:
        logger.warning("ended database session %d: its COPY had waited for its sender for over %g s", pid, seconds)
    return len(ended)
