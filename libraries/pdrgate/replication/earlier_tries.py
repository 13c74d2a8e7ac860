"""Earlier tries of a comparison: a red build that is compared again goes on with the evidence that is known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Pairs = tuple[tuple[float, float], ...]
"""Of one measurand, what the baseline's and the candidate's boot of each pair came to, in measured order."""

LASTING = 7 * 86400.0
"""Seconds that a try counts for: a retry comes sooner, and later on a machine may be another one unseen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """A comparison of two builds that has ended, as the next one of the same builds takes it over."""

    run: str
    """What tells it from others."""
    when: float
    """When it ended, seconds of the epoch."""
    verdict: str
    pairs: Mapping[str, Pairs]
    """By measurand."""
    afresh: bool = False
    """Whether it was asked to forget those before it."""
    resumed: bool = False
    """Whether it goes on with a run that was here before, and stands in its place."""

    @property
    def taken_over(self) -> int:
        """Pairs that the next one goes on with: of an odd number the last is not, see `Samples.after`."""
        return len(next(iter(self.pairs.values()), ())) // 2 * 2

    @property
    def sound(self) -> bool:
        """Whether it tells anything: of every measurand as many pairs, all of them positive numbers."""
        return (
            self.taken_over > 0
            and len({len(pairs) for pairs in self.pairs.values()}) == 1
            and all(0 < value < math.inf for pairs in self.pairs.values() for pair in pairs for value in pair)
        )


def counting(tries: Iterable[Try], now: float) -> tuple[Try, ...]:
    """Those that the next one goes on with, oldest first: all since the last that began afresh, of the last week.

    Args:
        tries: of one and the same two builds under equal fingerprints, in the order in which they ended.
        now: seconds of the epoch.
    """
    found: list[Try] = []
    for one in tries:
        if one.resumed:
            found = [other for other in found if other.run != one.run]
        if one.afresh:
            found.clear()
        found.append(one)
    return tuple(one for one in found if one.sound and now - one.when <= LASTING)
