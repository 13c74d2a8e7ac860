"""Tries of builds in a history: CI workers whose folders are empty each time know what the one before them found."""

from __future__ import annotations

import contextlib
import hashlib

import msgspec
from sqlalchemy import Connection, select
from sqlalchemy.dialects import postgresql, sqlite

from pdrgate.history.address import Address
from pdrgate.history.database.connection import LOCK_PATIENCE, Database
from pdrgate.history.database.tables import AttemptRow
from pdrgate.replication import Try


class HistoryLedger:
    """A `Ledger` in a history; opened for each question, so that a server may come and go meanwhile.

    Args:
        patience: as of `Database.open`.
    """

    def __init__(self, where: Address, patience: float = LOCK_PATIENCE) -> None:
        self.where = where
        self.patience = patience

    def tries(self, compared: str) -> list[Try]:
        """The tries of a comparison, as a `Ledger` gives them; none where there is no file yet. Raises StorageError,
        DataError."""
        if self.where.file is not None and not self.where.file.exists():
            return []
        with Database.open(self.where, patience=self.patience) as history, history.reading() as connection:
            return tries(connection, compared)

    def add(self, compared: str, one: Try) -> None:
        """Add a try, as a `Ledger` does. Raises StorageError, DataError."""
        told = msgspec.json.encode(one)
        row = {
            "key": hashlib.sha256(compared.encode() + told).hexdigest(), "compared": compared, "ended": one.when,
            "verdict": one.verdict, "attempt": told.decode(),
        }  # fmt: skip
        opened = Database.open(self.where, create=True, patience=self.patience)
        with opened as history, history.writing() as connection:
            of = postgresql if connection.dialect.name == "postgresql" else sqlite
            connection.execute(of.insert(AttemptRow).values(row).on_conflict_do_nothing(index_elements=["key"]))


def tries(connection: Connection, compared: str) -> list[Try]:
    """The tries of one comparison, in the order in which they ended. One that cannot be read is passed over."""
    asked = select(AttemptRow.attempt).where(AttemptRow.compared == compared).order_by(AttemptRow.ended, AttemptRow.id)
    found = []
    for told in connection.execute(asked).scalars():
        with contextlib.suppress(msgspec.MsgspecError):
            found.append(msgspec.json.decode(told, type=Try))
    return found
