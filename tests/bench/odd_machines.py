"""SUTs and machines whose pairs of boots are not independent draws around one change: simulated, no packet is sent.

Each gives the levels of both builds pair by pair, relative to the SUT's capacity and without the candidate's change.
gate_quality.py puts them before the gate.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

Pair = tuple[float, float]
"""Level of the baseline's boot, and of the candidate's."""


@dataclass(frozen=True, slots=True)
class Drifts:
    """What one side does from boot to boot is alike: an autoregressive process of the candidate's level."""

    alike: float
    """Correlation of neighbours."""
    deviation: float = 0.03

    def pairs(self, source: random.Random) -> Iterator[Pair]:
        level = source.gauss(0, 1)
        while True:
            yield 1.0, math.exp(self.deviation * level)
            level = self.alike * level + math.sqrt(1 - self.alike**2) * source.gauss(0, 1)


@dataclass(frozen=True, slots=True)
class SlowBoots:
    """Some boots are slower by 5 %, the others deviate by 0.5 %."""

    baseline: float
    """Share of its boots."""
    candidate: float

    def pairs(self, source: random.Random) -> Iterator[Pair]:
        while True:
            old, new = (
                math.exp(source.gauss(0, 0.0035)) * (0.95 if source.random() < share else 1.0)
                for share in (self.baseline, self.candidate)
            )
            yield old, new


@dataclass(frozen=True, slots=True)
class Ordered:
    """The boot that is measured second is slower: pairs are measured A B, then B A. Boots deviate by 0.2 %."""

    slower: float = 0.03

    def pairs(self, source: random.Random) -> Iterator[Pair]:
        for number in itertools.count():
            old, new = (math.exp(source.gauss(0, 0.0014)) for _ in range(2))
            yield (old, new * (1 - self.slower)) if number % 2 == 0 else (old * (1 - self.slower), new)


@dataclass(frozen=True, slots=True)
class HeavyTails:
    """Boots deviate by Student's t with three degrees of freedom."""

    deviation: float
    """Of a pair's ratio."""

    def pairs(self, source: random.Random) -> Iterator[Pair]:
        while True:
            old, new = (math.exp(self._off(source)) for _ in range(2))
            yield old, new

    def _off(self, source: random.Random) -> float:
        chi = sum(source.gauss(0, 1) ** 2 for _ in range(3))
        return self.deviation / math.sqrt(6) * source.gauss(0, 1) / math.sqrt(chi / 3)


@dataclass(frozen=True, slots=True)
class Shifts:
    """Each try has a ratio of its own, which deviates by so much; boots deviate by 0.5 % within a try."""

    deviation: float = 0.02

    def pairs(self, source: random.Random) -> Iterator[Pair]:
        own = math.exp(source.gauss(0, self.deviation))
        while True:
            old, new = (math.exp(source.gauss(0, 0.0035)) for _ in range(2))
            yield old, own * new
