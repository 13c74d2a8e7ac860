"""Testbeds whose SUT's kernel runs on a processor that may count what it executes."""

from __future__ import annotations

from contextlib import AbstractContextManager

from pdrgate.observers.processor import ProcessorWatch, busy
from pdrgate.observers.watching import Observer


class CountedByProcessor:
    """What a testbed of namespaces and a rack have in common; satisfies `Counting`."""

    _executed: ProcessorWatch
    _steered: tuple[int, ...]
    """The CPUs that forward as things are."""

    def counting(self) -> tuple[Observer, ...]:
        """What the kernel executes on the CPUs that forward, by function."""
        return self._executed.observers(self._steered)

    @property
    def uncounted(self) -> str:
        """Why that is not counted; empty when it is."""
        return self._executed.missing

    @property
    def exact(self) -> bool:
        """A processor counts all that it is interrupted by, too."""
        return False

    def busy(self) -> AbstractContextManager[object]:
        """Have programs use the CPUs that forward all the time."""
        return busy(self._executed.machine, self._steered)
