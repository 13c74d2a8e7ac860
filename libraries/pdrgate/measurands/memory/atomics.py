"""Atomic instructions of a packet: each takes a line from all other CPUs."""

from __future__ import annotations

from typing import ClassVar

from pdrgate.measurands.description import Description, Rule, Tolerance
from pdrgate.measurands.functions.more_by_function import more_by_function
from pdrgate.measurands.memory.of_memory import OfMemory
from pdrgate.measurands.unit_spelling import Unit


class Atomics(OfMemory):
    """Locked instructions, also those that a kernel has made simple ones where it runs on one CPU."""

    __slots__ = ()
    counted = "atomics"
    least = 0.7
    about: ClassVar[Description] = Description(
        "atomics", Unit("atomics/packet", metric="atomics_per_packet", prefixed=False), "lower",
        "atomic instructions that the SUT's kernel executes for a packet", rule=Rule.SURE,
        tolerance=Tolerance(0.05, ""), sentence=more_by_function("takes {} {} atomic instructions"),
        slows="An atomic instruction takes its line from all other CPUs, which is slow where several handle packets.",
    )  # fmt: skip
