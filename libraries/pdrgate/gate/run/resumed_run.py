"""What the run that is resumed has measured: it answers for whom it was made, and each trial of it once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from pdrgate.record.phase import Phase
from pdrgate.record.stretch import Belonging
from pdrgate.record.trial import Trial


class EarlierTrials:
    """Trials of the run that is resumed; of a new run there are none.

    Args:
        trials: in measured order.
    """

    def __init__(self, trials: Iterable[Trial] = ()) -> None:
        self.all = tuple(trials)
        self._left: dict[Belonging, deque[Trial]] = {}
        """Trials that have answered nothing yet, by whom they belong to, in measured order."""
        for one in self.all:
            if one.occasion.phase != Phase.DROPS:  # measured anew: one that nobody looks at shows no dropped packet
                self._left.setdefault(one.belonging, deque()).append(one)

    def next(self, belonging: Belonging, asked: tuple[object, ...]) -> Trial | None:
        """What was made next for the same, where it is what is asked for.

        Where it is not, the run goes its own way from there on, and what is left of it answers nothing any more.
        """
        left = self._left.get(belonging)
        if left and left[0].asked == asked:
            return left.popleft()
        if left:
            left.clear()
        return None

    def made_otherwise(self, belonging: Belonging) -> Trial | None:
        """A trial that answered the same test's question under other conditions; None where one did under the same.

        Pairs of boots are no such answers: they are taken over as a whole, or measured anew.
        """
        if belonging.pair or self._left.get(belonging):
            return None
        theirs = (
            left[0]
            for made, left in self._left.items()
            if left and not made.pair and made.scenario == belonging.scenario and made.test == belonging.test
        )
        return next(theirs, None)
