"""How much of an eBPF program's machine code its packets reach, of all that the kernel made of it."""

from __future__ import annotations

from collections.abc import Sequence

from pdrgate.measurands.counted.load_cost import ProgramSize
from pdrgate.measurands.description import Description, Rule
from pdrgate.measurands.observed import gained_by_places
from pdrgate.measurands.self_described import AsksNothing
from pdrgate.measurands.unit_spelling import Unit
from pdrgate.observers.load_observer import REACHED
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial


class CodeReached(AsksNothing):
    """The share of a program's machine code that ran in the trial in which most of it did."""

    about = Description(
        "code reached", Unit("", metric="code_reached_ratio", prefixed=False), "higher",
        "share of the eBPF program's machine code that packets reached",
        rule=Rule.REPORT_ONLY,
    )  # fmt: skip

    def value(self, trials: Sequence[Trial]) -> float | None:
        loaded = [one for one in trials if one.occasion.phase != Phase.IDLE]
        reached = [found for one in loaded if (found := gained_by_places(one, "program", REACHED))]
        size = ProgramSize().value(loaded)
        return min(1.0, max(reached) / size) if reached and size else None
