"""One deviation from several groups of values, older ones weighing less."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Weighed = tuple[float, float]
"""A value, and its weight in (0, 1]."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A standard deviation, in the values' unit, and how well it is known."""

    value: float
    freedom: float
    """Degrees of freedom; of values that weigh less than one, less than they number."""

    def at_least(self, confidence: float = 0.95) -> float:
        """What it is not below, for normal values (by chi-square). Raises ValueError unless 0 < confidence < 1."""
        if not 0 < confidence < 1:
            raise ValueError(f"confidence is {confidence!r}: it must lie between 0 and 1")
        from scipy.special import chdtri  # alone it costs a third of what scipy.stats costs to import

        return self.value * math.sqrt(self.freedom / float(chdtri(self.freedom, 1 - confidence)))


def pooled(groups: Iterable[Sequence[Weighed]]) -> Deviation | None:
    """The deviation of values around the mean of their own group; None where no group has two.

    The pooled variance, sum of squares over degrees of freedom, each group having sum(w) - sum(w^2) / sum(w) of these:
    n - 1 where all n weigh one, and w (n - 1) where all weigh w, so that what is known is forgotten as weights fall.
    """
    squares = freedom = 0.0
    for group in groups:
        total = math.fsum(weight for _, weight in group)
        if len(group) < 2 or total <= 0:
            continue
        centre = math.fsum(value * weight for value, weight in group) / total
        squares += math.fsum(weight * (value - centre) ** 2 for value, weight in group)
        freedom += max(0.0, total - math.fsum(weight**2 for _, weight in group) / total)
    return Deviation(math.sqrt(squares / freedom), freedom) if freedom > 0 else None
