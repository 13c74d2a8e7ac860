"""What a packet does with memory on one CPU: the lines that it touches and that caches miss, and its atomics.

Of each line of data is counted once what happens to it between one packet and the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pdrgate.measurands.functions.more_by_function import counted_by_function
from pdrgate.measurands.measurand import Ask
from pdrgate.measurands.memory.memory_trials import MemoryTrials
from pdrgate.measurands.memory.of_memory import OfMemory
from pdrgate.record.trial import Trial

_MISSES = "A CPU waits for each miss; instructions do not show that."


class CacheLines(OfMemory):
    """Lines of data, of 64 bytes."""

    counted = "lines"
    least = 3.0
    of_lines = True
    about = counted_by_function(
        "cache lines", "cache_lines", "cache lines of data that the SUT's kernel touches for a packet",
        "touches {} {} cache lines", 0.05, unit="lines",
        slows="A CPU waits for lines that its caches do not hold; instructions do not show that.",
    )  # fmt: skip

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        return MemoryTrials().next(trials)


class SecondLevelMisses(OfMemory):
    """Lines that neither the first nor the second level has."""

    counted = "missed_l2"
    least = 0.75
    about = counted_by_function(
        "L2 misses", "modelled_l2_misses",
        "lines that a packet touches and that a model of a server's second level does not have",
        "misses the modelled second level {} times {}", 0.1, slows=_MISSES,
    )  # fmt: skip


class LastLevelMisses(OfMemory):
    """Lines that no level has."""

    counted = "missed_last"
    least = 0.3
    about = counted_by_function(
        "last-level misses", "modelled_last_level_misses",
        "lines that a packet touches and that a model of a server's last level does not have",
        "misses the modelled last level {} times {}", 0.1, unit="misses", slows=_MISSES,
    )  # fmt: skip


class Atomics(OfMemory):
    """Locked instructions, also those that a kernel has made simple ones where it runs on one CPU."""

    counted = "atomics"
    least = 0.7
    about = counted_by_function(
        "atomics", "atomics", "atomic instructions that the SUT's kernel executes for a packet",
        "takes {} {} atomic instructions", 0.05,
        slows="An atomic instruction takes its line from all other CPUs, which is slow where several handle packets.",
    )  # fmt: skip


OF_MEMORY: Final[tuple[type[OfMemory], ...]] = (CacheLines, SecondLevelMisses, LastLevelMisses, Atomics)
"""The measurands of memory trials; the first asks for them."""
