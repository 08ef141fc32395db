"""What the database itself refuses."""

from __future__ import annotations

import pytest
from django.db import connection

pytestmark = pytest.mark.django_db


def test_partitions_of_this_and_the_next_month_exist() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_class WHERE relname ~ '^runs_(item|logchunk)_y[0-9]{4}m[0-9]{2}$'")
        assert cursor.fetchone()[0] == 4
