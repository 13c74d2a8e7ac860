"""Experience: what runs leave in a history for the next ones. From boots of a testbed its noise floor is computed, and
pairs of earlier tries of two builds count for the next try, and what a kernel runs on a path shows whether a change
touches it."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVarTuple

import msgspec
from sqlalchemy import Row, Select, select

from pdrgate.history.address import Address
from pdrgate.history.database.connection import LOCK_PATIENCE, Database
from pdrgate.history.database.inserting import insert_new
from pdrgate.history.database.tables import AttemptRow, CodeRow, NoiseRow
from pdrgate.record.path_code import PathCode
from pdrgate.replication import NoiseObservation, ObservedBoot, Try

_Columns = TypeVarTuple("_Columns")

NEWEST = 500
"""Observations of a testbed that are read: what is older weighs next to nothing by then."""


@dataclass(frozen=True, slots=True)
class Experience:
    """The experience in one history, which is opened for each question, so that a server may come and go meanwhile.

    A row that cannot be read is skipped. Every method raises StorageError where the history cannot be reached, and
    DataError where it is no history.

    Attributes:
        patience: as of `Database.open`.
    """

    where: Address
    patience: float = LOCK_PATIENCE

    def observations(self, testbed: str) -> list[NoiseObservation]:
        """The newest observations of a testbed, oldest first; none where there is no file yet."""
        asked = (
            select(NoiseRow.measured, NoiseRow.boots)
            .where(NoiseRow.testbed == testbed)
            .order_by(NoiseRow.measured.desc(), NoiseRow.id.desc())
            .limit(NEWEST)
        )
        found = []
        for measured, boots in self._rows(asked):
            with contextlib.suppress(msgspec.MsgspecError):
                decoded = msgspec.json.decode(boots, type=tuple[ObservedBoot, ...])
                found.append(NoiseObservation(when=measured, boots=decoded))
        return found[::-1]

    def add_observation(self, testbed: str, conditions: Mapping[str, str], seen: NoiseObservation) -> None:
        """Keep one observation; an equal one is kept once.

        Args:
            testbed: what must be equal for observations to be of one testbed, see `pdrgate.results.fingerprint.series`.
            conditions: the entries that it is the digest of, for people.
        """
        self._add(NoiseRow, {
            "key": hashlib.sha256(msgspec.json.encode([testbed, seen])).hexdigest(), "testbed": testbed,
            "measured": seen.when, "conditions": dict(conditions), "boots": msgspec.json.encode(seen.boots).decode(),
        })  # fmt: skip

    def tries(self, compared: str) -> list[Try]:
        """The tries of one comparison in the order in which they ended; none where there is no file yet.

        Args:
            compared: the digest of both builds and of both fingerprints, see `pdrgate.gate.comparisons.pairs.tries`.
        """
        asked = (
            select(AttemptRow.attempt)
            .where(AttemptRow.compared == compared)
            .order_by(AttemptRow.ended, AttemptRow.id)
        )  # fmt: skip
        found = []
        for (encoded,) in self._rows(asked):
            with contextlib.suppress(msgspec.MsgspecError):
                found.append(msgspec.json.decode(encoded, type=Try))
        return found

    def add_try(self, compared: str, ended: Try) -> None:
        """Keep one try; an equal one is kept once."""
        encoded = msgspec.json.encode(ended)
        self._add(AttemptRow, {
            "key": hashlib.sha256(compared.encode() + encoded).hexdigest(), "compared": compared, "ended": ended.when,
            "verdict": ended.verdict, "attempt": encoded.decode(),
        })  # fmt: skip

    def path_codes(self, kernel: str) -> dict[str, PathCode]:
        """What a kernel runs on each path that it was seen on, by scenario, whenever that was.

        Args:
            kernel: see `pdrgate.gate.run.selection_file.code_key`.
        """
        asked = (
            select(CodeRow.scenario, CodeRow.code)
            .where(CodeRow.kernel == kernel)
            .order_by(CodeRow.seen, CodeRow.id)
        )  # fmt: skip
        found: dict[str, PathCode] = {}
        for scenario, code in self._rows(asked):
            with contextlib.suppress(msgspec.MsgspecError):
                seen = msgspec.json.decode(code, type=PathCode)
                found[scenario] = seen.with_more(found.get(scenario, PathCode()))
        return found

    def add_path_codes(self, kernel: str, codes: Mapping[str, PathCode], seen: float) -> None:
        """Keep what a kernel runs on some paths, by scenario; an equal one is kept once."""
        opened = Database.open(self.where, create=True, patience=self.patience)
        with opened as history, history.writing() as connection:
            for scenario, code in codes.items():
                words = {name: sorted(names) for name, names in asdict(code).items()}
                encoded = msgspec.json.encode(words)
                key = hashlib.sha256(b"\0".join((kernel.encode(), scenario.encode(), encoded))).hexdigest()
                row = {"key": key, "kernel": kernel, "scenario": scenario, "seen": seen, "code": encoded.decode()}
                insert_new(connection, CodeRow, "key", row)

    def _rows(self, asked: Select[*_Columns]) -> Sequence[Row[*_Columns]]:
        """All rows that are asked for; none where there is no file yet."""
        if self.where.file is not None and not self.where.file.exists():
            return ()
        with Database.open(self.where, patience=self.patience) as history, history.reading() as connection:
            return connection.execute(asked).all()

    def _add(self, table: type[NoiseRow | AttemptRow], row: Mapping[str, object]) -> None:
        opened = Database.open(self.where, create=True, patience=self.patience)
        with opened as history, history.writing() as connection:
            insert_new(connection, table, "key", row)
