"""The schema of a history's tables: it is made in an empty database, and any other schema is refused."""

from __future__ import annotations

from sqlalchemy import Column, Connection, Integer, MetaData, Table, insert, inspect, literal_column, select, text

from pdrgate.history.database.tables import Base
from pdrgate.values.errors import DataError

DATABASE_SCHEMA = 4
"""The number of the schema that `tables` describes."""
SCHEMA_TABLE = "pdrgate_schema"
"""The name is pdrgate's own: a server's database may hold tables of another program, too."""
_TABLE = Table(SCHEMA_TABLE, MetaData(), Column("schema", Integer, nullable=False))
_LOCK = 0x7064_7267  # "pdrg"


def make_or_check(connection: Connection, where: str) -> None:
    """Make all tables where there is none, in the open transaction; refuse tables of another schema.

    Args:
        where: the history, for errors.

    Raises:
        DataError: the history is of another schema, or holds tables of another program.
    """
    known = _schema(connection)
    if known is None and connection.dialect.name == "postgresql":
        # Of two runs that open a new database at once, one makes the tables. SQLite's lock is held already.
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        known = _schema(connection)
    if known is None:
        if foreign := _foreign(connection):
            raise DataError(f"{where} is no history: it holds another program's table {foreign}; name another")
        Base.metadata.create_all(connection, checkfirst=False)
        _TABLE.create(connection)
        connection.execute(insert(_TABLE).values(schema=DATABASE_SCHEMA))
    elif known != str(DATABASE_SCHEMA):
        raise DataError(
            f"the history {where} is of schema {known}, and this pdrgate reads schema {DATABASE_SCHEMA}; name a new "
            "one, and fill it from the folders of runs with 'pdrgate history import'"
        )


def _schema(connection: Connection) -> str | None:
    if not inspect(connection).has_table(SCHEMA_TABLE):
        return None
    return str(connection.execute(select(literal_column("*")).select_from(_TABLE)).scalar())


def _foreign(connection: Connection) -> str:
    """A table that is in the way: any at all in a file, one of pdrgate's names on a server."""
    tables = sorted(inspect(connection).get_table_names())
    if connection.dialect.name == "postgresql":
        tables = [name for name in tables if name in Base.metadata.tables]
    return tables[0] if tables else ""
