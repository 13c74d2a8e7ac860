"""Lets go of old runs; what a name stands for is kept."""

from __future__ import annotations

from sqlalchemy import Connection, and_, delete, select

from pdrgate.history.database.connection import Database
from pdrgate.history.database.experience import TRY
from pdrgate.history.database.tables import (
    EnvironmentRow,
    ExperienceRow,
    FingerprintRow,
    PinRow,
    ResultRow,
    RunRow,
    SideRow,
)
from pdrgate.replication.earlier_tries import LASTING


def prune(connection: Connection, before: float, now: float) -> int:
    """Delete the runs that started earlier, with all that they measured, and say how many there were; and what boots
    deviated by then, and tries that ended then.

    Args:
        before: seconds of the epoch. Runs of a pinned build stay, however old.
        now: the same. Tries that still count stay too: no retry gets a fresh chance by it.
    """
    pinned = (
        select(ResultRow.run_id)
        .join(SideRow, SideRow.result_id == ResultRow.id)
        .where(SideRow.build.in_(select(PinRow.build)))
    )  # fmt: skip
    gone = connection.execute(delete(RunRow).where(RunRow.started < before, RunRow.id.not_in(pinned))).rowcount
    for is_old in (
        and_(ExperienceRow.kind != TRY, ExperienceRow.moment < before),
        and_(ExperienceRow.kind == TRY, ExperienceRow.moment < min(before, now - LASTING)),
    ):
        connection.execute(delete(ExperienceRow).where(is_old))
    for table, used in ((FingerprintRow, SideRow.fingerprint), (EnvironmentRow, SideRow.environment)):
        connection.execute(delete(table).where(table.digest.not_in(select(used).where(used.is_not(None)))))
    return gone


def give_back(database: Database) -> None:
    """Make a SQLite file as small as what it holds; a server does so by itself, in time."""
    if database.address.file is not None:
        with database.alone() as connection:
            connection.execute("VACUUM")
