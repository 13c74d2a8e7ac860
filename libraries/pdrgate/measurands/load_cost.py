"""The cost of having an eBPF program in the kernel: what its verifier went through, its machine code, its maps.

Each is told when the program is loaded, and repeats exactly on one kernel: it is the program that changes it.
A program that takes the verifier too long, or whose maps do not fit, does not load at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import ClassVar, Self

from pdrgate.measurands.description import Description, MeasurandRole, ToldByOthers
from pdrgate.measurands.measurand import Setting
from pdrgate.measurands.observed import gained_by_places
from pdrgate.measurands.unit_spelling import Unit
from pdrgate.trial import Trial


@dataclass(frozen=True, slots=True)
class _LoadCost(ToldByOthers):
    """One of the numbers that the loader tells."""

    counter: ClassVar[str]

    @classmethod
    def of(cls, setting: Setting) -> Self:
        return cls()

    def value(self, trials: Sequence[Trial]) -> float | None:
        told = [found for one in trials if (found := gained_by_places(one, "program", self.counter))]
        return float(median(told)) if told else None


class VerifiedInstructions(_LoadCost):
    """Instructions that the verifier went through, over all ways through the program."""

    __slots__ = ()
    counter = "verified"
    about: ClassVar[Description] = Description(
        "verified instructions", Unit("instructions", metric="instructions", prefixed=False), "lower",
        "instructions that the kernel's verifier went through when the eBPF program was loaded",
        role=MeasurandRole.TOLD,
    )  # fmt: skip


class VerifierStates(_LoadCost):
    """States that the verifier kept."""

    __slots__ = ()
    counter = "states"
    about: ClassVar[Description] = Description(
        "verifier states", Unit("states", metric="states", prefixed=False), "lower",
        "states that the kernel's verifier kept when the eBPF program was loaded", role=MeasurandRole.TOLD,
    )  # fmt: skip


class ProgramSize(_LoadCost):
    """Bytes of machine code."""

    __slots__ = ()
    counter = "jited"
    about: ClassVar[Description] = Description(
        "program size", Unit("bytes", metric="program_bytes", prefixed=False), "lower",
        "machine code that the kernel made of the eBPF program", role=MeasurandRole.TOLD,
    )  # fmt: skip


class MapMemory(_LoadCost):
    """Bytes of all maps."""

    __slots__ = ()
    counter = "memory"
    about: ClassVar[Description] = Description(
        "map memory", Unit("bytes", metric="map_bytes", prefixed=False), "lower",
        "memory of the eBPF program's maps, as the kernel accounts for it", role=MeasurandRole.TOLD,
    )  # fmt: skip
