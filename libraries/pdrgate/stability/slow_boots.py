"""Slow boots: whether the few boots that come up slower than the others are one build's, or the testbed's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from statistics import median
from typing import Final

from pdrgate.stability.checks import Bounds
from pdrgate.stats.modes import two_modes

_HALF_BY_CHANCE: Final = 0.02
"""So seldom are so few boots slow of builds that come up at either level as often: else they are no few."""
_APART_BY_CHANCE: Final = 0.05
"""The chance of a difference of the sides at which slow boots are the testbed's: it is at least as large."""


@dataclass(frozen=True, slots=True)
class SlowBoots:
    """A minority of the boots of two builds that has a level of its own, each relative to the median of its build."""

    baseline: int
    candidate: int
    boots: int
    """The number of boots of each build."""
    depth: float
    """Relative slowness against the others' level."""

    @property
    def testbeds(self) -> bool:
        """Whether both builds have them, and by chance one has no more than the other has."""
        return min(self.baseline, self.candidate) > 0 and self._by_chance > _APART_BY_CHANCE

    @property
    def sentence(self) -> str:
        """The sentence that says whose boots are slow."""
        return (
            f"{self.candidate or 'none'} of {self.boots} boots of the candidate, and {self.baseline or 'none'} of "
            f"{self.boots} of the baseline, came up {self.depth:.1%} slower than the others"
        )

    @property
    def _by_chance(self) -> float:
        """Fisher's exact test, both sides: probability of the slow boots falling as unevenly on the builds."""
        slow = self.baseline + self.candidate
        ways = [
            comb(self.boots, ours) * comb(self.boots, slow - ours)
            for ours in range(max(0, slow - self.boots), min(slow, self.boots) + 1)
        ]
        here = comb(self.boots, self.candidate) * comb(self.boots, self.baseline)
        return sum(way for way in ways if way <= here) / sum(ways)


def slow_boots(baseline: Sequence[float], candidate: Sequence[float]) -> SlowBoots | None:
    """The few boots that are slower; None if there are none, or they are no few.

    Boots that come up at either of two levels as often are builds that flip; few are a minority that half of all boots
    would show in one of fifty comparisons.

    Args:
        baseline: a rate, boot by boot.
        candidate: the same, of as many boots.
    """
    centres = median(baseline), median(candidate)
    own = [[value / centre for value in side] for side, centre in zip((baseline, candidate), centres, strict=True)]
    modes = two_modes([*own[0], *own[1]])
    total = len(baseline) + len(candidate)
    if modes is None or not modes.significant or modes.gap <= Bounds().mode_gap:
        return None
    if modes.low_count > _fewest_of_halves(total):
        return None
    middle = (modes.low + modes.high) / 2
    old, new = (sum(value < middle for value in side) for side in own)
    return SlowBoots(old, new, len(candidate), 1 - modes.low / modes.high)


@lru_cache(maxsize=256)
def _fewest_of_halves(total: int) -> int:
    """The most boots of so many that are few, see `_HALF_BY_CHANCE`."""
    below = 0
    for count in range(total):
        below += comb(total, count)
        if below / 2**total > _HALF_BY_CHANCE:
            return count - 1
    return total
