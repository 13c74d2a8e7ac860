"""Experience: what runs leave in a history for the next ones. From boots of a testbed its noise floor is computed, and
pairs of earlier tries of two builds count for the next try, and what a kernel runs on a path shows whether a change
touches it."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeVar

import msgspec
from sqlalchemy import select

from pdrgate.history.address import Address
from pdrgate.history.database.connection import LOCK_PATIENCE, Database
from pdrgate.history.database.inserting import insert_new
from pdrgate.history.database.tables import ExperienceRow
from pdrgate.record.path_code import PathCode
from pdrgate.replication import NoiseObservation, Try

NEWEST = 500
"""Observations of a testbed that are read: what is older weighs next to nothing by then."""
ExperienceKind = Literal["noise", "try", "code"]
TRY: ExperienceKind = "try"
"""The kind of what no age makes worthless: a try that counts is not pruned."""


@dataclass(frozen=True, slots=True)
class _KeptNoise:
    """An observation of a testbed's noise, and the entries that the testbed's digest is of, for people."""

    seen: NoiseObservation
    conditions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _KeptCode:
    """What a kernel runs on the path of a scenario."""

    scenario: str
    code: PathCode


_Kept = TypeVar("_Kept", _KeptNoise, Try, _KeptCode)


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
        return [one.seen for one in self._kept("noise", testbed, _KeptNoise, NEWEST)]

    def add_observation(self, testbed: str, conditions: Mapping[str, str], seen: NoiseObservation) -> None:
        """Keep one observation; an equal one is kept once.

        Args:
            testbed: what must be equal for observations to be of one testbed, see `pdrgate.results.fingerprint.series`.
            conditions: the entries that it is the digest of, for people.
        """
        self._keep("noise", testbed, seen.when, [_KeptNoise(seen, conditions)])

    def tries(self, compared: str) -> list[Try]:
        """The tries of one comparison in the order in which they ended; none where there is no file yet.

        Args:
            compared: the digest of both builds and of both fingerprints, see `pdrgate.gate.comparisons.pairs.tries`.
        """
        return self._kept(TRY, compared, Try)

    def add_try(self, compared: str, ended: Try) -> None:
        """Keep one try; an equal one is kept once."""
        self._keep(TRY, compared, ended.when, [ended])

    def path_codes(self, kernel: str) -> dict[str, PathCode]:
        """What a kernel runs on each path that it was seen on, by scenario, whenever that was.

        Args:
            kernel: see `pdrgate.gate.run.selection_file.code_key`.
        """
        found: dict[str, PathCode] = {}
        for one in self._kept("code", kernel, _KeptCode):
            found[one.scenario] = one.code.with_more(found.get(one.scenario, PathCode()))
        return found

    def add_path_codes(self, kernel: str, codes: Mapping[str, PathCode], seen: float) -> None:
        """Keep what a kernel runs on some paths, by scenario; an equal one is kept once."""
        words = ({name: sorted(names) for name, names in asdict(code).items()} for code in codes.values())
        self._keep(
            "code", kernel, seen, ({"scenario": name, "code": code} for name, code in zip(codes, words, strict=True))
        )  # fmt: skip

    def _kept(self, kind: ExperienceKind, subject: str, form: type[_Kept], most: int | None = None) -> list[_Kept]:
        """What is kept of a subject, oldest first, the newest so many; none where there is no file yet."""
        if self.where.file is not None and not self.where.file.exists():
            return []
        asked = (
            select(ExperienceRow.content)
            .where(ExperienceRow.kind == kind, ExperienceRow.subject == subject)
            .order_by(ExperienceRow.moment.desc(), ExperienceRow.id.desc())
            .limit(most)
        )
        with Database.open(self.where, patience=self.patience) as history, history.reading() as connection:
            rows = connection.execute(asked).scalars().all()
        found: list[_Kept] = []
        for content in rows:
            with contextlib.suppress(msgspec.MsgspecError):
                found.append(msgspec.json.decode(content, type=form))
        return found[::-1]

    def _keep(self, kind: ExperienceKind, subject: str, moment: float, contents: Iterable[Any]) -> None:
        opened = Database.open(self.where, create=True, patience=self.patience)
        with opened as history, history.writing() as connection:
            for one in map(msgspec.json.encode, contents):
                key = hashlib.sha256(b"\0".join((kind.encode(), subject.encode(), one))).hexdigest()
                row = {"key": key, "kind": kind, "subject": subject, "moment": moment, "content": one.decode()}
                insert_new(connection, ExperienceRow, "key", row)
