"""Do the repeats fall into two groups? A SUT that flips between two speeds has no PDR, only a mixture of two.

MLR search does not notice: with a SUT flipping between 10 and 8 Mpps, every search ends somewhere in between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MODES_MIN_RUNS = 8
_SMALLEST_GROUP = 3
_SMALLEST_SHARE = 0.1
_RESOLUTION = 1e-6


@dataclass(frozen=True, slots=True)
class Modes:
    """The best split of a sample into a low and a high group."""

    low: float
    """Mean of the low group, in the sample's unit."""
    high: float
    low_count: int
    high_count: int
    separation: float
    """Distance of the means in units of the wider group's deviation."""
    bound: float
    """Separation that one mode reaches by chance in about one of a thousand samples of this size."""

    @property
    def significant(self) -> bool:
        """True when the sample has two modes."""
        return self.excess > 0

    @property
    def excess(self) -> float:
        """Distance of the separation beyond its bound."""
        return self.separation - self.bound

    @property
    def gap(self) -> float:
        """Distance of the means relative to the overall mean."""
        total = self.low_count + self.high_count
        centre = (self.low * self.low_count + self.high * self.high_count) / total
        return (self.high - self.low) / abs(centre) if centre else 0.0


def critical_separation(n: int) -> float:
    """The separation above which a sample of n values has two modes: 5 + 90 / n, see ``two_modes``."""
    return 5.0 + 90.0 / n


def two_modes(values: Sequence[float]) -> Modes | None:
    """Split the sorted sample where the two groups are furthest apart, measured by the wider group's deviation.

    Each group holds at least three values and a tenth of them. The wider group's deviation, rather than a pooled one,
    keeps a throughput that is cut off at the offered load (half of the repeats equal, the rest a tail) from passing
    as two modes. None for fewer than 8 values or when all are equal.

    Measured by tests/bench/false_alarms.py, n = 8 … 50: of 20000 samples with one mode, 0.00 to 0.03 % are called two
    modes when they are normal, uniform, Laplace, Student's t with 3 degrees of freedom or exponential, up to 0.15 %
    when log-normal and 0.06 to 0.28 % when cut off at the offered load. Of 2000 samples flipping evenly between 10 and
    8 Mpps, with a noise of 0.3 % (1 %, 2 %): 71 % (52, 8) are called so at n = 8, 88 % (80, 11) at n = 10, 100 % (100,
    58) at n = 20, and 100 % (100, 100) at n = 50. Flipping 20:80 with 0.3 %: 31 % at n = 10, 80 % at 20, 98 % at 50.
    """
    n = len(values)
    if n < MODES_MIN_RUNS:
        return None
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    centred = ordered - ordered.mean()
    power = float((centred**2).sum())
    if power <= (_RESOLUTION * abs(float(ordered.mean()))) ** 2 * n:
        return None
    smallest = max(_SMALLEST_GROUP, math.ceil(_SMALLEST_SHARE * n))
    low_sizes = np.arange(smallest, n - smallest + 1)
    high_sizes = n - low_sizes
    low_sums = np.cumsum(centred)[low_sizes - 1]
    low_squares = np.cumsum(centred**2)[low_sizes - 1]
    low_variance = (low_squares - low_sums**2 / low_sizes) / (low_sizes - 1)
    high_variance = (power - low_squares - low_sums**2 / high_sizes) / (high_sizes - 1)
    # Groups of equal values have no deviation; a floor keeps the ratio finite.
    variance = np.maximum(np.maximum(low_variance, high_variance), 1e-12 * power)
    separations = -low_sums * (1 / low_sizes + 1 / high_sizes) / np.sqrt(variance)
    best = int(np.argmax(separations))
    size = int(low_sizes[best])
    return Modes(
        low=float(ordered[:size].mean()),
        high=float(ordered[size:].mean()),
        low_count=size,
        high_count=n - size,
        separation=float(separations[best]),
        bound=critical_separation(n),
    )
