"""What was observed of testbeds: the boots of comparisons and runs, from which a noise floor is had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from pdrgate.errors import DataError
from pdrgate.history.lines import LineFile
from pdrgate.replication import Observation

NOISE_FILE = "noise.jsonl"


class NoiseStore(Protocol):
    """Keeps observations by testbed."""

    def observations(self, testbed: str) -> list[Observation]:
        """All of a testbed, oldest first. Raises DataError when they cannot be read."""

    def add(self, testbed: str, conditions: Mapping[str, str], observation: Observation) -> None:
        """Keep one more; when this returns, it is on disk.

        Args:
            testbed: what must be equal for observations to be of one testbed, see `pdrgate.results.fingerprint.series`.
            conditions: the entries that it is the digest of, for people.

        Raises:
            StorageError: it cannot be written.
            DataError: what is there is not ours.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """An observation and whose it is, as `NoiseStore.add` takes it; a line of a `NoiseFile`."""

    testbed: str
    observation: Observation
    conditions: Mapping[str, str]


class NoiseFile:
    """A `NoiseStore` in a file of lines, one for each observation.

    Lines are appended and never changed, so that two runs can write at once. A line that cannot be read, a torn one or
    one of another version, is passed over: the floor then rests on the others.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def observations(self, testbed: str) -> list[Observation]:
        return [one.observation for one in self._lines(testbed) if one.testbed == testbed]

    def all(self) -> list[Observed]:
        """Those of all testbeds. Raises DataError when the file cannot be read."""
        return list(self._lines(""))

    def _lines(self, holding: str) -> Iterator[Observed]:
        """What the lines say that have this text somewhere."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise DataError(f"cannot read {self.path}: {error.strerror}; name another file with --noise") from error
        for line in content.splitlines():
            if holding.encode() not in line:
                continue
            try:
                yield msgspec.json.decode(line, type=Observed)
            except (msgspec.MsgspecError, ValueError, RecursionError):
                continue

    def add(self, testbed: str, conditions: Mapping[str, str], observation: Observation) -> None:
        line = Observed(testbed=testbed, observation=observation, conditions=conditions)
        with LineFile(self.path) as file:
            file.append_line(msgspec.json.encode(line).decode())
