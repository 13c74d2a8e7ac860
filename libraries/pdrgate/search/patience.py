"""Patience with a machine that disturbs now and then: a trial that is not sound is measured again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pdrgate.record.trial import Trial

Measure = Callable[[float, float], Trial]
"""Measures one trial, given a load in packets/s and a duration in seconds."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Number of immediate repeats of a trial that is not sound."""

    limited: int = 2
    """Times where the generator fell short."""
    disturbed: int = 2
    """Times where the machine disturbed it."""

    def again(self, made: Sequence[Trial]) -> bool:
        """Whether another attempt follows those that were made for one load."""
        last = made[-1]
        if last.sound:
            return False
        return len(made) <= (self.limited if last.generator_limited else self.disturbed)

    def attempts(self, measure: Measure, load: float, duration: float) -> Iterator[Trial]:
        """The trials made for one load: repeated while they are not sound and patience lasts."""
        made: list[Trial] = []
        while not made or self.again(made):
            made.append(measure(load, duration))
            yield made[-1]
