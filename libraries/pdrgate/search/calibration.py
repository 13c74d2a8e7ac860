"""Calibration of a search: the highest load that the generator can offer here, measured and not configured."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pdrgate.record.trial import Trial
from pdrgate.search.patience import Measure
from pdrgate.values.errors import GeneratorError

FLAT_OUT = 20e6
"""Packets/s that no generator of one CPU reaches: asks for all it has."""
_MARGIN = 0.9
"""The search stays this far below the ceiling, which itself varies from trial to trial."""
_FEWEST, _MOST, _AGREEMENT = 3, 6, 0.95
_FAR = 10.0
"""Times what the SUT forwarded: no search comes near a ceiling so far above, and it need not be known well."""
_BEYOND = 1.5
"""Times what the SUT forwarded flat out."""
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
    def search_load(self) -> float:
        """The load where a search begins: well beyond what the SUT forwarded, which may be far below the generator's
        ceiling.

        There the generator is not at its limit, and whether its ceiling can be held at every moment does not matter.
        """
        return min(self.max_load, _BEYOND * self.forwarding_rate) if self.forwarding_rate > 0 else self.max_load

    @property
    def min_load(self) -> float:
        """The lowest load worth a trial.

        A slow SUT may get no packet out while it is flooded, and forward a thousandth of the ceiling all the same.
        """
        return max(1.0, self.search_load / (_SPAN if self.forwarding_rate > 0 else _SPAN**2))


def calibrate(measure: Measure, duration: float, flat_out: float = FLAT_OUT, *, steady: bool = False) -> Calibration:
    """Send flat out for ``duration`` seconds, 3 to 6 times: until the two best agree within 5 %.

    Two trials are enough if the SUT forwarded the same in both, and the generator offered ten times as much. One
    undisturbed trial is enough if the SUT is ``steady``: it would forward the same again.

    The first trials after a start find cold caches, and on a shared machine any may miss its CPU. The generator's
    ceiling is therefore the best rate that it has shown twice.

    Args:
        steady: whether the SUT's speed is constant.

    Raises:
        GeneratorError: the generator offered nothing.
    """
    trials: list[Trial] = []
    while len(trials) < _MOST and not _known(trials, steady):
        trials.append(measure(flat_out, duration))
    best = max(trials, key=lambda trial: trial.offered_load)
    if not (math.isfinite(best.offered_load) and best.offered_load > 0):
        raise GeneratorError("the generator offered no packet when asked for all it has; see the worker's messages")
    return Calibration(best.offered_load, best.forwarding_rate)


def _known(trials: list[Trial], steady: bool) -> bool:
    if not trials:
        return False
    offered = sorted(trial.offered_load for trial in trials)
    forwarded = sorted(trial.forwarding_rate for trial in trials)
    far = forwarded[0] > 0 and offered[0] >= _FAR * forwarded[-1]
    if len(trials) == 1:
        return far and steady and not trials[0].seen.disturbed
    if far and _agree(forwarded):
        return True
    return len(trials) >= _FEWEST and _agree(offered)


def _agree(rates: list[float]) -> bool:
    """Whether the two highest of the sorted ``rates`` agree."""
    return rates[-2] >= rates[-1] * _AGREEMENT
