"""Earlier tries of a comparison: a red build that is compared again goes on with the evidence that is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pdrgate.results.verdict import Verdict

Pairs = tuple[tuple[float, float], ...]
"""What the baseline's and the candidate's boot of each pair came to in one measurand, in measured order."""

LASTING = 7 * 86400.0
"""Seconds that a try counts for: a retry comes sooner, and later on a machine may be another one unseen."""
CLOCKS = 60.0
"""Seconds that the clocks of two workers may differ by: a try that ended later than that from now is none."""
_LONGEST = 1000
"""Characters of a run's name with its test's."""
_MOST = 1000
"""Pairs of one try."""
_REACH = 1e30
"""The largest value, and the largest inverse of one: all units that anything is measured in stay far within."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """A comparison of two builds that has ended, as the next one of the same builds takes it over."""

    run: str
    """Name of the run and of its test, which identifies the try."""
    when: float
    """When the try ended, seconds of the epoch."""
    verdict: str
    pairs: Mapping[str, Pairs]
    """The pairs of each measurand."""
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
        """Whether the try can count: it has a name and a verdict, and equally many pairs of each measurand, all
        positive numbers."""
        return (
            0 < len(self.run) <= _LONGEST
            and self.verdict in Verdict.__members__
            and 0 < self.taken_over <= _MOST
            and len({len(pairs) for pairs in self.pairs.values()}) == 1
            and all(1 / _REACH < value < _REACH for pairs in self.pairs.values() for pair in pairs for value in pair)
        )


def counting(tries: Iterable[Try], now: float) -> tuple[Try, ...]:
    """The tries that the next one goes on with, oldest first: all since the last that began afresh, of the last week.

    Pairs of one run that stand there twice count once. A try that is not sound, or that ended in the future, counts for
    nothing, and makes no other one be forgotten.

    Args:
        tries: of one and the same two builds under equal fingerprints, in the order in which they ended.
        now: seconds of the epoch.
    """
    found: list[Try] = []
    for one in tries:
        if not (one.sound and -CLOCKS <= now - one.when <= LASTING):
            continue
        if one.resumed:
            found = [other for other in found if other.run != one.run]
        if one.afresh:
            found.clear()
        if all((other.run, other.pairs) != (one.run, one.pairs) for other in found):
            found.append(one)
    return tuple(found)
