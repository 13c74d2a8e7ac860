"""Where to search: the highest load that the generator can offer here, measured and not configured."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pdrgate.errors import GeneratorError
from pdrgate.search.mlr import Measure

FLAT_OUT = 20e6
"""Packets/s that no generator of one CPU reaches: asks for all it has."""
_MARGIN = 0.95
"""The search stays this far below the ceiling, which itself varies from trial to trial."""
_SPAN = 1000.0
"""Ratio of the highest to the lowest load of a search."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The generator's ceiling and what the SUT forwarded there, packets/s."""

    ceiling: float
    forwarding_rate: float
    """Forwarding rate at the ceiling: the MRR of this SUT, when it is below the ceiling."""

    @property
    def max_load(self) -> float:
        """The highest load worth a trial."""
        return self.ceiling * _MARGIN

    @property
    def min_load(self) -> float:
        """The lowest load worth a trial."""
        return max(1.0, self.max_load / _SPAN)


def calibrate(measure: Measure, duration: float, trials: int = 3, flat_out: float = FLAT_OUT) -> Calibration:
    """Send flat out ``trials`` times for ``duration`` seconds and take the median of what was offered and forwarded.

    Raises:
        GeneratorError: the generator offered nothing.
    """
    results = sorted((measure(flat_out, duration) for _ in range(trials)), key=lambda trial: trial.offered_load)
    middle = results[len(results) // 2]
    rates = sorted(trial.forwarding_rate for trial in results)
    if not (math.isfinite(middle.offered_load) and middle.offered_load > 0):
        raise GeneratorError("the generator offered no packet when asked for all it has; see the worker's messages")
    return Calibration(middle.offered_load, rates[len(rates) // 2])
