"""Replacements of what a living SUT was set up with, counted while packets pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pdrgate.gate.comparisons.living_boots.counted_packets import CountedPackets
from pdrgate.gate.sut.prepared_sut import PreparedSut
from pdrgate.measurands.measurand import Described
from pdrgate.measurands.rates.replacement import ReplacementLoss, Replacements, ReplacementTime
from pdrgate.record.trial import Trial

_ASKED = Replacements(load=500.0, duration=0.5, count=2)
"""A load that a guest takes besides."""


class CountedReplacements(CountedPackets):
    """Trials of a living SUT in which a command replaces what it was set up with; a `LivingCount`."""

    first: type[Described] = ReplacementTime

    def count(self, sut: PreparedSut) -> None:
        while (ask := _ASKED.next(sut.trials)) is not None:
            sut.measure(ask)

    def doubtful(self, suts: Sequence[PreparedSut]) -> Sequence[PreparedSut]:
        return ()

    def values(self, trials: Sequence[Trial]) -> Mapping[str, float]:
        values = {one.about.name: one.value(trials) for one in (ReplacementTime(), ReplacementLoss())}
        return {name: value for name, value in values.items() if value is not None}

    def why_missing(self, trials: Sequence[Trial]) -> str:
        return f"none of its {len(trials)} trials shows a replacement"
