"""What a comparison in pairs may cost, and the time that it has taken."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from pdrgate.gate.run.progress import Estimate

DEFAULT_BUDGET = 540.0
STEADY_BUDGET = 100.0
"""Seconds of a comparison where the speed is constant: what fourteen pairs of 7 s do not decide there, forty hardly do.
"""
_FEWEST_IN_ANY_TIME = 2
"""Pairs that are measured, whatever time they take: one pair has no deviation."""
_FEWEST_CONCLUSIVE = 6
"""Pairs that a budget which nobody named allows in any case, however long boots take."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How many pairs of boots a comparison may cost. It ends early once the rule has its answer."""

    pairs: int
    """The most pairs that are measured."""
    budget: float | None
    """Seconds after which no pair is begun, once there are two; None: `STEADY_BUDGET` for guests of constant speed and
    `DEFAULT_BUDGET` for others, and time for six pairs if they take longer."""
    tolerance: float
    together: bool = True
    """Whether the boots of a pair are up at once and measured in turn."""
    comparisons: int = 1
    """How many comparisons the whole run has, this one included."""
    whole: bool = False
    """Whether all pairs are measured, whatever the first ones show."""
    several_cpus: bool = False
    """Whether boots that stay up have a pair of several CPUs beside them, which is seen once."""


class PairsClock:
    """The time of one comparison, and what its plan allows.

    Its methods take the number of pairs that are measured by then, and whether the boots' speed is constant
    (``steady``).
    """

    def __init__(self, plan: Plan) -> None:
        self.spent = 0.0
        """Seconds that earlier starts of this comparison took."""
        self._plan = plan
        self._began = time.monotonic()
        self._ends = [0.0]
        """Seconds from the begin of this start to the end of each of its pairs, 0 the first."""

    @property
    def elapsed(self) -> float:
        """Seconds that the comparison has taken, in all its starts."""
        return self.spent + time.monotonic() - self._began

    def pair_ended(self) -> None:
        """Take the time of a pair's end."""
        self._ends.append(time.monotonic() - self._began)

    @property
    def has_timed_a_pair(self) -> bool:
        """Whether this start has measured a pair."""
        return len(self._ends) > 1

    def budget(self, pairs: int, steady: bool) -> float:
        """Seconds after which no pair is begun."""
        if self._plan.budget is not None:
            return self._plan.budget
        each = self.elapsed / pairs if pairs else 0.0
        return max(STEADY_BUDGET if steady else DEFAULT_BUDGET, _FEWEST_CONCLUSIVE * each)

    def affordable(self, pairs: int, steady: bool) -> int:
        """Pairs that there is time for, as long as each takes what they took so far."""
        if not pairs or self.elapsed <= 0:
            return self._plan.pairs
        each = self.elapsed / pairs
        return min(self._plan.pairs, max(pairs, math.ceil(self.budget(pairs, steady) / each)))

    def in_time(self, pair: int, pairs: int, steady: bool) -> bool:
        """Whether there is time to begin that pair."""
        return pair <= _FEWEST_IN_ANY_TIME or self.elapsed <= self.budget(pairs, steady)

    def left(self, outlook: tuple[int, int], pairs: int, steady: bool) -> Estimate:
        """What the comparison still takes, once a pair is timed.

        Args:
            outlook: pairs that the rule may want, from and to.
        """
        # The first of a start is slower than all others: both builds are searched.
        counted = self._ends[1:] if len(self._ends) > 2 else self._ends
        each = (counted[-1] - counted[0]) / (len(counted) - 1)
        since = time.monotonic() - self._began - self._ends[-1]
        time_left = max(0.0, self.budget(pairs, steady) - self.elapsed + since)
        allowed = math.ceil(time_left / each) if each else self._plan.pairs
        least, most = (min(number - pairs, allowed) for number in outlook)
        return Estimate(max(0.0, least * each - since), max(0.0, most * each - since))
