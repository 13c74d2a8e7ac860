"""Counting of the SUT's kernel by a processor that may do so."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from pdrgate.hosts.host import Host
from pdrgate.observers.processor import ProcessorWatch, busy
from pdrgate.observers.watching import Observer


class ProcessorCounting:
    """Counting of a SUT that is no guest; satisfies `Counting`.

    Args:
        machine: the machine whose processor counts.
        forwarding: returns the CPUs that forward at present.
    """

    def __init__(self, machine: Host, forwarding: Callable[[], tuple[int, ...]]) -> None:
        self._watch = ProcessorWatch(machine)
        self._forwarding = forwarding

    def counting(self) -> tuple[Observer, ...]:
        """Observers that count the kernel on the CPUs that forward, by function."""
        return self._watch.observers(self._forwarding())

    def tracing(self) -> tuple[Observer, ...]:
        """Nothing: a processor follows no calls."""
        return ()

    def memory(self) -> tuple[Observer, ...]:
        """Nothing: a processor does not record which memory is touched."""
        return ()

    def programs(self) -> tuple[Observer, ...]:
        """Nothing: a processor does not separate a run of a program from what is around it."""
        return ()

    @property
    def uncounted(self) -> str:
        """Why the kernel is not counted; empty when it is."""
        return self._watch.missing

    @property
    def exact(self) -> bool:
        """Equal packets cost unequal numbers: a processor counts all that it is interrupted by, too."""
        return False

    def busy(self) -> AbstractContextManager[object]:
        """Make programs use the CPUs that forward all the time."""
        return busy(self._watch.machine, self._forwarding())

    def describe(self) -> dict[str, str]:
        """Properties of the counting that results need in common to be comparable."""
        return self._watch.describe()

    def close(self) -> None:
        """Count no longer. Calling it twice is harmless."""
        self._watch.close()
