"""pairs.jsonl: the pairs of boots of a comparison, each on disk before the next is begun, for the run that continues
it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from pdrgate.errors import DataError
from pdrgate.history.lines import LineFile
from pdrgate.results.model import BootResult, Side, SideResult

PAIRS_FILE = "pairs.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStep:
    """A pair that was measured, or a boot that failed, and what the run that goes on from there must know."""

    scenario: str
    builds: Mapping[str, str]
    elapsed: float
    """Seconds that the comparison has taken by then."""
    boots: tuple[BootResult, ...]
    """Both of a pair, or the one that failed."""
    loads: tuple[float, ...] = ()
    latency_loads: tuple[float, ...] = ()
    sides: Mapping[Side, SideResult] = field(default_factory=dict)
    """What is known of the builds by then."""


class PairsFile(LineFile):
    """Appends steps. Raises StorageError."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / PAIRS_FILE)

    def append(self, step: StoredStep) -> None:
        """Write one step; when this returns, it is on disk."""
        self.append_line(msgspec.json.encode(step).decode())

    def steps(self, scenario: str, builds: Mapping[str, str]) -> list[StoredStep]:
        """Those of a comparison, in measured order. Raises DataError when the file is damaged."""
        found = []
        try:
            for line in self.path.read_bytes().splitlines():
                step = msgspec.json.decode(line, type=StoredStep)
                if (step.scenario, dict(step.builds)) == (scenario, dict(builds)):
                    found.append(step)
        except msgspec.MsgspecError as error:
            raise DataError(f"cannot continue from {self.path}: it is damaged ({error}); start a new run") from error
        return found
