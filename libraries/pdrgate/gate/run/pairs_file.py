"""The file pairs.jsonl: the pairs of boots of comparisons, each on disk before the next is begun, for a run that is
resumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from pdrgate.history.lines import LineFile
from pdrgate.replication.replicates import SutFacts
from pdrgate.results.model import BootResult, Side, SideResult
from pdrgate.values.errors import DataError, without_value

PAIRS_FILE = "pairs.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStep:
    """A pair that was measured, or a boot that failed, and what the run that goes on from there must know."""

    test: str = ""
    """Long name of the test that compares; empty where no test does."""
    scenario: str
    builds: Mapping[str, str]
    """What a person calls the build, by side."""
    identities: Mapping[str, str] = field(default_factory=dict)
    """What the build is, by side, see `pdrgate.gate.comparisons.pairs.comparison_task.Build.identity`."""
    elapsed: float
    """Seconds that the comparison has taken by then."""
    boots: tuple[BootResult, ...]
    """Both of a pair, or the one that failed."""
    loads: tuple[float, ...] = ()
    latency_loads: tuple[float, ...] = ()
    sides: Mapping[Side, SideResult] = field(default_factory=dict)
    """What is known of the builds by then."""
    facts: SutFacts = field(default_factory=SutFacts)
    """What is known of the SUT, whichever build it runs."""

    @property
    def pair(self) -> int:
        """The number of the pair; of several that were measured at once, the last."""
        return max((boot.pair for boot in self.boots), default=0)

    def begins(self, number: int) -> bool:
        """Whether it is a step from that pair on; of several that are measured at once, any boot may have failed."""
        return self.pair >= number if self.failed else min((boot.pair for boot in self.boots), default=0) == number

    @property
    def failed(self) -> bool:
        """Whether it is a boot that failed, so that the pair is still to be measured."""
        return any(boot.failure for boot in self.boots)


class PairsFile(LineFile):
    """Appends steps. Of a run that is resumed it hands out those that are there, each once.

    Raises:
        StorageError: the file cannot be written.
        DataError: the run is to be resumed, and the file is damaged.
    """

    def __init__(self, path: Path, *, resumed: bool) -> None:
        super().__init__(path)
        self._left = _read(path) if resumed else []

    def append(self, step: StoredStep) -> None:
        """Write one step; when this returns, it is on disk."""
        self.append_line(msgspec.json.encode(step).decode())

    def take(self, test: str, scenario: str) -> list[StoredStep]:
        """The steps of a comparison, in measured order, as far as each goes on where the one before it ended."""
        found: list[StoredStep] = []
        left: list[StoredStep] = []
        wanted: int | None = 1
        for step in self._left:
            mine = step.scenario == scenario and step.test == test
            if mine and wanted is not None and step.begins(wanted):
                found.append(step)
                wanted = wanted if step.failed else step.pair + 1
            else:
                left.append(step)
                wanted = None if mine else wanted  # from here on it is the next comparison's of that name
        self._left = left
        return found


def _read(path: Path) -> list[StoredStep]:
    try:
        return [msgspec.json.decode(line, type=StoredStep) for line in path.read_bytes().splitlines()]
    except msgspec.MsgspecError as error:
        raise DataError(
            f"cannot continue from {path}: it is damaged ({without_value(error)}); start a new run"
        ) from error
