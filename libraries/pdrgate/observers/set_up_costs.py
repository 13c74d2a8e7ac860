"""Observers of what a SUT was set up with: what loading its eBPF program cost, and replacing it while packets pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

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


_PLACE = Place("replacement")


class ReplacingObserver:
    """Observer that begins to replace when a trial begins, and ends when all is replaced; satisfies `Observer`.

    Args:
        replace: does it, and returns how often and how long in numbers by their names; raises TestbedError.
    """

    def __init__(self, replace: Callable[[], Mapping[str, int]]) -> None:
        self._replace = replace
        self._worker = ThreadPoolExecutor(1)
        self._coming: Future[Mapping[str, int]] | None = None

    def begin(self) -> None:
        self._coming = self._worker.submit(self._replace)

    def end(self) -> Observation:
        assert self._coming is not None
        coming, self._coming = self._coming, None
        numbers = {Counter(_PLACE, name): number for name, number in coming.result().items()}
        return Observation(dict.fromkeys(numbers, 0), numbers)
