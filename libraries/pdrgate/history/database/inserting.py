"""Rows that are put into the tables of a history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, insert
from sqlalchemy.dialects import postgresql, sqlite


def insert_row(connection: Connection, table: type[Any], row: Mapping[str, Any]) -> int:
    """Put one row in, and return the number that the table gave it."""
    key = connection.execute(insert(table).values(row)).inserted_primary_key
    assert key is not None  # each of the tables has one
    return int(key[0])


def insert_all(connection: Connection, table: type[Any], rows: Iterable[Mapping[str, Any]]) -> None:
    """Put all rows in, if there are any."""
    if found := list(rows):
        connection.execute(insert(table), found)


def insert_new(connection: Connection, table: type[Any], key: str, row: Mapping[str, Any]) -> bool:
    """Put a row in unless the table has its ``key``, and return whether it was put in.

    A row of a transaction that ends meanwhile is waited for.
    """
    made = (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(table).values(row)
    asked = made.on_conflict_do_nothing(index_elements=[key]).returning(getattr(table, key))
    return connection.execute(asked).scalar() is not None
