"""Who is frozen within a transaction keeps nothing locked for longer than a lease."""

from __future__ import annotations

import time
from collections.abc import Iterator

import psycopg
import pytest
from django.db import InternalError, OperationalError, connection, transaction

from apps.core.sessions import end_stuck_copies
from clawpanel.databases import IDLE_IN_TRANSACTION_SECONDS, from_url

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def frozen() -> Iterator[psycopg.Connection]:
    """Another session of ours, in the middle of a COPY, that sends nothing more."""
    params = connection.get_connection_params()
    for own in ("context", "cursor_factory", "server_side_binding"):
        params.pop(own, None)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE held (id int)")
    session = psycopg.connect(**params)
    try:
        session.pgconn.exec_(b"BEGIN")
        session.pgconn.exec_(b"LOCK TABLE held")
        session.pgconn.exec_(b"COPY held FROM STDIN")
        yield session
    finally:
        session.close()
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE held")


def is_free() -> bool:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE held NOWAIT")
    except OperationalError:
        return False
    return True


def test_a_copy_that_waits_for_its_sender_is_ended_with_its_locks(frozen: psycopg.Connection) -> None:
    frozen.pgconn.put_copy_data(b"1\n")
    assert not is_free()
    assert end_stuck_copies(seconds=60) == 0
    assert not is_free()
    time.sleep(0.2)
    assert end_stuck_copies(seconds=0.1) == 1
    for _ in range(100):
        if is_free():
            break
        time.sleep(0.05)
    assert is_free()
    assert end_stuck_copies(seconds=0.1) == 0


def test_a_session_idle_within_a_transaction_is_ended_by_the_server() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        assert cursor.fetchone() == (f"{IDLE_IN_TRANSACTION_SECONDS}s",)
    try:
        with (  # noqa: PT012
            pytest.raises((OperationalError, InternalError)),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = '100ms'")
            time.sleep(0.5)
            cursor.execute("SELECT 1")
    finally:
        connection.close()


def test_what_the_url_says_of_the_session_counts() -> None:
    url = "postgres://u@h/d?options=-c%20idle_in_transaction_session_timeout%3D5s"
    options = from_url(url, pool=0)["OPTIONS"]["options"]
    assert options.split("-c ")[1:] == [
        f"idle_in_transaction_session_timeout={IDLE_IN_TRANSACTION_SECONDS}s ",
        "idle_in_transaction_session_timeout=5s",
    ]
