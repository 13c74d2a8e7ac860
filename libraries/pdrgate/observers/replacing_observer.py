"""Replacement on a SUT while a trial's packets pass, by a command that runs some times in a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from pdrgate.observers.reading import Counter, Place
from pdrgate.observers.watching import Observation

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
