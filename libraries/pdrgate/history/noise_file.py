"""What was observed of testbeds: the boots of comparisons and runs, from which a noise floor is had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from pdrgate.history.lines import LineFile, readable_lines
from pdrgate.replication import NoiseObservation

NOISE_FILE = "noise.jsonl"


class NoiseStore(Protocol):
    """Keeps observations by testbed."""

    def observations(self, testbed: str) -> list[NoiseObservation]:
        """All of a testbed, oldest first. Raises DataError when they cannot be read."""

    def add(self, testbed: str, conditions: Mapping[str, str], observation: NoiseObservation) -> None:
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
    observation: NoiseObservation
    conditions: Mapping[str, str]


class NoiseFile:
    """A `NoiseStore` in a file of lines, one for each observation.

    Lines are appended and never changed, so that two runs can write at once. A line that cannot be read, a torn one or
    one of another version, is passed over: the floor then rests on the others.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def observations(self, testbed: str) -> list[NoiseObservation]:
        lines = readable_lines(self.path, testbed, Observed)
        return [one.observation for one in lines if one.testbed == testbed]

    def all(self) -> list[Observed]:
        """The observations of all testbeds. Raises DataError when the file cannot be read."""
        return readable_lines(self.path, "", Observed)

    def add(self, testbed: str, conditions: Mapping[str, str], observation: NoiseObservation) -> None:
        line = Observed(testbed=testbed, observation=observation, conditions=conditions)
        with LineFile(self.path, lasting=True) as file:
            file.append_line(msgspec.json.encode(line).decode())
