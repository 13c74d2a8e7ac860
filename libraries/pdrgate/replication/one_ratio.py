"""Whether pairs of earlier tries and fresh ones have one ratio; where they do not, only the fresh ones count.

Earlier pairs come from a file or a database, and a machine may have been another one unseen. More of them than of the
fresh ones would decide, and the few fresh ones would even be taken for lone dips.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from pdrgate.replication.earlier_tries import Pairs
from pdrgate.replication.samples import Samples
from pdrgate.stats.intervals import relative
from pdrgate.stats.ranks import rank_sum_p

DOUBT = 0.02
"""How often pairs of one ratio are taken for those of two. Two fresh pairs beyond all of 13 earlier ones reach it, and
four beyond all of five."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """What the pairs of earlier tries and the fresh ones of a measurand come to: relative changes that are not one."""

    measurand: str
    earlier: float
    fresh: float
    slower: bool
    """Whether the earlier pairs show a change for the worse beyond the tolerance."""

    def __str__(self) -> str:
        return f"{self.measurand} {self.earlier:+z.1%} then, {self.fresh:+z.1%} now"


def contradiction(fresh: Samples, tries: Sequence[Pairs]) -> Contradiction | None:
    """How far the pairs of all earlier tries lie from the fresh ones, where chance alone hardly does that; else None.

    A test on ranks of their ratios, whose level holds for any distribution: neither heavy tails nor a pair that dips
    make two ratios of one.
    """
    then = fresh.gains_of(chain.from_iterable(tries))
    now = fresh.gains
    if rank_sum_p(now, then) > DOUBT:
        return None
    sign = 1.0 if fresh.better == "higher" else -1.0
    earlier, ours = (relative(sign * statistics.median(each)) for each in (then, now))
    return Contradiction(fresh.measurand, earlier, ours, slower=statistics.median(then) < fresh.least_gain)
