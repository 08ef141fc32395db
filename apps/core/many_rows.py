"""Inserting many new rows in one statement with one value."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from django.db import connection
from django.db.models import AutoField, Model


def insert_many(rows: Sequence[Model], *, pass_over: bool = False) -> None:
    """Of one model, each gets its id. All values are plain ones that JSON knows, times, or UUIDs.

    `pass_over` those that a unique constraint refuses.

    `bulk_create` gives every value a placeholder: of a row of fifty columns that alone takes longer than the insert.
    """
    if not rows:
        return
    model = type(rows[0])
    fields = [field for field in model._meta.concrete_fields if not field.generated]
    table = connection.ops.quote_name(model._meta.db_table)
    names = ", ".join(connection.ops.quote_name(str(field.column)) for field in fields)
    own = model._meta.pk
    if not isinstance(own, AutoField):
        raise TypeError(f"{model.__name__} has no number of its own")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, %s)) FROM generate_series(1, %s)",
            [model._meta.db_table, own.column, len(rows)],
        )
        for row, (number,) in zip(rows, cursor.fetchall(), strict=True):
            row.pk = number
        plain = orjson.dumps([{field.column: getattr(row, field.attname) for field in fields} for row in rows])
        insert = f"INSERT INTO {table} ({names}) SELECT {names} FROM json_populate_recordset(NULL::{table}, %s::json)"  # noqa: S608 (names of ours)
        cursor.execute(insert + (" ON CONFLICT DO NOTHING" if pass_over else ""), [plain.decode()])
    for row in rows:
        row._state.adding, row._state.db = False, connection.alias
