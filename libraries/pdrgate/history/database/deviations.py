"""What boots of testbeds came to, in a history: what CI workers share whose folders are empty each time."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection, select
from sqlalchemy.dialects import postgresql, sqlite

from pdrgate.history.address import Address
from pdrgate.history.database.connection import Database
from pdrgate.history.database.tables import NoiseRow
from pdrgate.history.noise_file import Observed
from pdrgate.replication import NoiseObservation, ObservedBoot

NEWEST = 500
"""Observations of a testbed that are read: what is older weighs next to nothing by then."""


class HistoryNoise:
    """A `NoiseStore` in a history; opened for each question, so that a server may come and go meanwhile."""

    def __init__(self, where: Address) -> None:
        self.where = where

    def observations(self, testbed: str) -> list[NoiseObservation]:
        """The observations of a testbed, as a `NoiseStore` gives them; none where there is no file yet. Raises
        StorageError, DataError."""
        if self.where.file is not None and not self.where.file.exists():
            return []
        with Database.open(self.where) as history, history.reading() as connection:
            return observations(connection, testbed)

    def add(self, testbed: str, conditions: Mapping[str, str], observation: NoiseObservation) -> None:
        """Add an observation, as a `NoiseStore` does. Raises StorageError, DataError."""
        one = Observed(testbed=testbed, observation=observation, conditions=conditions)
        with Database.open(self.where, create=True) as history, history.writing() as connection:
            add_observation(connection, one)


def add_observation(connection: Connection, one: Observed) -> bool:
    """Keep it; False when it is there already."""
    seen = one.observation
    row: dict[str, Any] = {
        "key": hashlib.sha256(msgspec.json.encode([one.testbed, seen])).hexdigest(), "testbed": one.testbed,
        "measured": seen.when, "conditions": dict(one.conditions),
        "boots": msgspec.json.encode(seen.boots).decode(),
    }  # fmt: skip
    of = postgresql if connection.dialect.name == "postgresql" else sqlite
    made = of.insert(NoiseRow).values(row).on_conflict_do_nothing(index_elements=["key"]).returning(NoiseRow.id)
    return connection.execute(made).scalar() is not None


def observations(connection: Connection, testbed: str, newest: int = NEWEST) -> list[NoiseObservation]:
    """The observations of a testbed, the oldest first. One that cannot be read is passed over."""
    asked = (
        select(NoiseRow.measured, NoiseRow.boots)
        .where(NoiseRow.testbed == testbed)
        .order_by(NoiseRow.measured.desc(), NoiseRow.id.desc())
        .limit(newest)
    )
    found = []
    for measured, boots in connection.execute(asked):
        try:
            found.append(
                NoiseObservation(when=measured, boots=msgspec.json.decode(boots, type=tuple[ObservedBoot, ...]))
            )
        except msgspec.MsgspecError:
            continue
    return found[::-1]
