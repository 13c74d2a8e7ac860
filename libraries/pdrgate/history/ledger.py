"""The ledger: what tries of two builds have left for the next one, so that no retry is a fresh chance to pass."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from pdrgate.history.lines import LineFile, readable_lines
from pdrgate.replication import Try

LEDGER_FILE = "ledger.jsonl"


class Ledger(Protocol):
    """Keeps tries by what was compared."""

    def tries(self, compared: str) -> list[Try]:
        """All of one and the same comparison, oldest first. Raises DataError when they cannot be read.

        Args:
            compared: the digest of both builds and of both fingerprints, see the module `tries_ledger`.
        """

    def add(self, compared: str, one: Try) -> None:
        """Keep one more; when this returns, it is on disk.

        Raises:
            StorageError: it cannot be written.
            DataError: what is there is not ours.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    compared: str
    attempt: Try


class LedgerFile:
    """A `Ledger` in a file of lines, one for each try; as `pdrgate.history.noise_file.NoiseFile`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def tries(self, compared: str) -> list[Try]:
        lines = readable_lines(self.path, compared, _Line)
        return [line.attempt for line in lines if line.compared == compared]

    def add(self, compared: str, one: Try) -> None:
        line = _Line(compared=compared, attempt=one)
        with LineFile(self.path, lasting=True) as file:
            file.append_line(msgspec.json.encode(line).decode())
