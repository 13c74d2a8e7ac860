"""The cost of having an eBPF program in the kernel: what its verifier went through, its machine code, its maps.

The kernel reports each number when the program is loaded. It repeats exactly on one kernel, so only the program changes
it. A program that takes the verifier too long, or whose maps do not fit, does not load at all. Because nothing makes it
scatter, a growth needs no interval: where a run asks for a tolerance, the two numbers alone decide.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import ClassVar, Final

from pdrgate.measurands.description import Description, Rule, Sentence, Tolerance, TolerancesAsked
from pdrgate.measurands.measurand import BuildSeen, Measurand
from pdrgate.measurands.observed import gained_by_places
from pdrgate.measurands.unit_spelling import Unit
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.model import ChangeResult
from pdrgate.results.verdict import Verdict

LOAD_TOLERANCE: Final = "load_tolerance"
"""The option that says how much more a load may cost."""


def _both_numbers(words: str) -> Sentence:
    """A change by both numbers as they are: they are counts, and have no interval.

    Args:
        words: what has a number, ``the verifier looks at {} instructions``.
    """

    def clause(change: ChangeResult, _: object) -> str:
        said = words.format(f"{change.candidate:.0f}")
        return f"{said}, baseline {change.baseline:.0f} ({100 * change.change:+z.1f} %)"

    return Sentence(clause, whole=False)


_ASKED = Tolerance(option=LOAD_TOLERANCE)


@dataclass(frozen=True, slots=True)
class _LoadCost(Measurand):
    """A number that the kernel reports of a program that it has loaded."""

    counter: ClassVar[str]

    def value(self, trials: Sequence[Trial]) -> float | None:
        # What a kernel does by itself was seen once, maybe under the program of another path.
        loaded = [one for one in trials if one.occasion.phase != Phase.IDLE]
        counters = [found for one in loaded if (found := gained_by_places(one, "program", self.counter))]
        return float(median(counters)) if counters else None

    @classmethod
    def changed(cls, baseline: BuildSeen, candidate: BuildSeen, asked: TolerancesAsked) -> ChangeResult | None:
        """The growth; None where no tolerance was asked for, or a build's number is not known.

        A growth beyond the tolerance is a REGRESSION. What shrank makes no packet faster: it is a PASS.
        """
        tolerance, about = asked.get(LOAD_TOLERANCE), cls.about
        old, new = (_of_most(side.values.get(about.name, ())) for side in (baseline, candidate))
        if tolerance is None or not old or not new:
            return None
        grown = new / old - 1.0
        return ChangeResult(
            measurand=about.name, change=grown, lower=grown, upper=grown, confidence=1.0, tolerance=tolerance,
            baseline=old, candidate=new, unit=about.unit, better=about.better,
            verdict=Verdict.REGRESSION if grown > tolerance else Verdict.PASS,
        )  # fmt: skip


def _of_most(loads: Sequence[float]) -> float:
    """The value of most loads; 0 where there is none. A stored result may hold any number."""
    found = [value for value in loads if 0 < value < math.inf]
    return median(found) if found else 0.0


class VerifiedInstructions(_LoadCost):
    """Instructions that the verifier went through, over all ways through the program."""

    counter = "verified"
    about = Description(
        "verified instructions", Unit("instructions", metric="instructions", prefixed=False), "lower",
        "instructions that the kernel's verifier went through when the eBPF program was loaded",
        rule=Rule.EXACT, tolerance=_ASKED, sentence=_both_numbers("the verifier looks at {} instructions"),
    )  # fmt: skip


class VerifierStates(_LoadCost):
    """States that the verifier kept."""

    counter = "states"
    about = Description(
        "verifier states", Unit("states", metric="states", prefixed=False), "lower",
        "states that the kernel's verifier kept when the eBPF program was loaded",
        rule=Rule.EXACT, tolerance=_ASKED, sentence=_both_numbers("the verifier keeps {} states"),
    )  # fmt: skip


class ProgramSize(_LoadCost):
    """Bytes of machine code."""

    counter = "jited"
    about = Description(
        "program size", Unit("bytes", metric="program_bytes", prefixed=False), "lower",
        "machine code that the kernel made of the eBPF program",
        rule=Rule.EXACT, tolerance=_ASKED, sentence=_both_numbers("the program has {} bytes of machine code"),
    )  # fmt: skip


class MapMemory(_LoadCost):
    """Bytes of all maps."""

    counter = "memory"
    about = Description(
        "map memory", Unit("bytes", metric="map_bytes", prefixed=False), "lower",
        "memory of the eBPF program's maps, as the kernel accounts for it",
        rule=Rule.EXACT, tolerance=_ASKED, sentence=_both_numbers("the program's maps take {} bytes"),
    )  # fmt: skip


LOAD_COSTS: Final[tuple[type[_LoadCost], ...]] = (VerifiedInstructions, VerifierStates, ProgramSize, MapMemory)


def load_values(counters: Mapping[str, int]) -> dict[str, float]:
    """Load costs by measurand. A count of 0 is left out, for the kernel does not report it."""
    return {one.about.name: float(counters[one.counter]) for one in LOAD_COSTS if counters.get(one.counter)}
