"""Cost of loading an eBPF program, in each trial that it carried packets in: numbers that no trial changes."""

from __future__ import annotations

from collections.abc import Mapping

from pdrgate.observers.reading import Counter, Place
from pdrgate.observers.watching import Observation

PROGRAM_PLACE = Place("program")
"""The place of what is counted of an eBPF program under test."""
REACHED = "reached"
"""Counter of the bytes of machine code of eBPF programs that ran in a trial."""


class LoadObserver:
    """Observer that returns the numbers of the program's loading; satisfies `Observer`.

    Args:
        costs: numbers by their names.
    """

    def __init__(self, costs: Mapping[str, int]) -> None:
        self._costs = {Counter(PROGRAM_PLACE, name): number for name, number in costs.items()}

    def begin(self) -> None:
        """There is nothing to begin."""

    def end(self) -> Observation:
        return Observation(dict.fromkeys(self._costs, 0), self._costs)
