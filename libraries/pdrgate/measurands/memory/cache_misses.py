"""Lines, of data and of code, that a packet touches and that a model of a server's caches does not have."""

from __future__ import annotations

from typing import ClassVar

from pdrgate.measurands.description import Description, Rule, Tolerance
from pdrgate.measurands.functions.more_by_function import more_by_function
from pdrgate.measurands.memory.of_memory import OfMemory
from pdrgate.measurands.unit_spelling import Unit


class SecondLevelMisses(OfMemory):
    """Lines that neither the first nor the second level has."""

    __slots__ = ()
    counted = "missed_l2"
    least = 0.75
    about: ClassVar[Description] = Description(
        "L2 misses", Unit("L2 misses/packet", metric="modelled_l2_misses_per_packet", prefixed=False), "lower",
        "lines that a packet touches and that a model of a server's second level does not have",
        rule=Rule.SURE, tolerance=Tolerance(0.1, ""),
        sentence=more_by_function("misses the modelled second level {} times {}"),
        slows="A CPU waits for each miss; instructions do not show that.",
    )  # fmt: skip


class LastLevelMisses(OfMemory):
    """Lines that no level has."""

    __slots__ = ()
    counted = "missed_last"
    least = 0.3
    about: ClassVar[Description] = Description(
        "last-level misses", Unit("misses/packet", metric="modelled_last_level_misses_per_packet", prefixed=False),
        "lower", "lines that a packet touches and that a model of a server's last level does not have",
        rule=Rule.SURE, tolerance=Tolerance(0.1, ""),
        sentence=more_by_function("misses the modelled last level {} times {}"),
        slows="A CPU waits for each miss; instructions do not show that.",
    )  # fmt: skip
