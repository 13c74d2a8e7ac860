"""The version of a history's tables: older ones are brought up to date when they are opened, newer ones refused.

The steps are Alembic's, in ``migrations/versions``; the newest of them is what `tables` says.
"""

from __future__ import annotations

import logging
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from pdrgate.history.database.tables import Base
from pdrgate.values.errors import DataError

VERSION_TABLE = "pdrgate_schema"
"""A name of its own: a server's database may hold another program's tables, too, and their version."""
_MIGRATIONS = Path(__file__).parent / "migrations"
_LOCK = 0x7064_7267  # "pdrg"


def bring_up_to_date(connection: Connection, where: str, revision: str = "head") -> None:
    """Make what tables are missing, in the transaction that is open.

    Args:
        where: the history, for errors.
        revision: which step to end at, for tests of older histories.

    Raises:
        DataError: it was written by a newer pdrgate, or holds tables of another program.
    """
    config = _config()
    steps = ScriptDirectory.from_config(config)
    if _version(connection) == steps.get_current_head():
        return
    if connection.dialect.name == "postgresql":
        # Of two runs that find a new database at once, one makes the tables. SQLite's lock is held already.
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    known = {step.revision for step in steps.walk_revisions()}
    found = _version(connection)
    if found is not None and found not in known:
        raise DataError(
            f"the history {where} was written by a newer pdrgate: its tables are of version {found}, and this one "
            f"knows them up to {steps.get_current_head()}; use that version"
        )
    if found is None and (foreign := _foreign(connection)):
        raise DataError(f"{where} is no history: it holds another program's table {foreign}; name another")
    config.attributes["connection"] = connection
    logging.getLogger("alembic").setLevel(logging.WARNING)
    command.upgrade(config, revision)


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _version(connection: Connection) -> str | None:
    return MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()


def _foreign(connection: Connection) -> str:
    """A table that is in our way: any at all in a file, one of our names on a server."""
    tables = sorted(inspect(connection).get_table_names())
    if connection.dialect.name == "postgresql":
        tables = [name for name in tables if name in Base.metadata.tables]
    return tables[0] if tables else ""
