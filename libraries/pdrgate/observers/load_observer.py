"""What loading an eBPF program has cost, in each trial that it carried packets in: numbers that no trial changes."""

from __future__ import annotations

from collections.abc import Mapping

from pdrgate.observers.reading import Counter, Place
from pdrgate.observers.watching import Observation

_PROGRAM = Place("program")


class LoadObserver:
    """Tells what was told when the program was loaded; satisfies `Observer`.

    Args:
        told: numbers by their names.
    """

    def __init__(self, told: Mapping[str, int]) -> None:
        self._told = {Counter(_PROGRAM, name): number for name, number in told.items()}

    def begin(self) -> None:
        """There is nothing to begin."""

    def end(self) -> Observation:
        return Observation(dict.fromkeys(self._told, 0), self._told)
