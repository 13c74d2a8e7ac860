"""The cache lines of data that a packet touches: each is counted once between one packet and the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pdrgate.measurands.description import Description, Rule, Tolerance
from pdrgate.measurands.functions.more_by_function import more_by_function
from pdrgate.measurands.measurand import Ask
from pdrgate.measurands.memory.memory_trials import MemoryTrials
from pdrgate.measurands.memory.of_memory import OfMemory
from pdrgate.measurands.unit_spelling import Unit
from pdrgate.record.trial import Trial


class CacheLines(OfMemory):
    """Lines of data, of 64 bytes."""

    __slots__ = ()
    counted = "lines"
    least = 3.0
    of_lines = True
    about: ClassVar[Description] = Description(
        "cache lines", Unit("lines/packet", metric="cache_lines_per_packet", prefixed=False), "lower",
        "cache lines of data that the SUT's kernel touches for a packet", rule=Rule.SURE,
        tolerance=Tolerance(0.05, ""), sentence=more_by_function("touches {} {} cache lines"),
        slows="A CPU waits for lines that its caches do not hold; instructions do not show that.",
    )  # fmt: skip

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        return MemoryTrials().next(trials)
