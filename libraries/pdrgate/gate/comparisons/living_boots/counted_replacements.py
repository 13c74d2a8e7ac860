"""Replacements of what a living SUT was set up with, counted while packets pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pdrgate.gate.comparisons.living_boots.counted_packets import CountedPackets
from pdrgate.gate.sut.open_loop_sut import OpenLoopSut
from pdrgate.measurands.measurand import Described
from pdrgate.measurands.rates.replacement import ReplacementLoss, Replacements, ReplacementTime
from pdrgate.record.trial import Trial

_ASKED = Replacements(load=500.0, duration=0.5, count=2)
"""A load that a guest takes besides."""


class CountedReplacements(CountedPackets):
    """Trials of a living SUT in which a command replaces what it was set up with; a `LivingCount`."""

    first: type[Described] = ReplacementTime

    def count(self, sut: OpenLoopSut) -> None:
        while (ask := _ASKED.next(sut.trials)) is not None:
            sut.measure(ask.load, ask.duration, ask.phase)

    def doubtful(self, suts: Sequence[OpenLoopSut]) -> Sequence[OpenLoopSut]:
        return ()

    def values(self, stretches: Sequence[Trial]) -> Mapping[str, float]:
        values = {one.about.name: one.value(stretches) for one in (ReplacementTime(), ReplacementLoss())}
        return {name: value for name, value in values.items() if value is not None}

    def untold(self, stretches: Sequence[Trial]) -> str:
        return f"none of its {len(stretches)} trials tells of a replacement"
