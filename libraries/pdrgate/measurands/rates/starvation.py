"""Just past the PDR: what the programs of an end host get while the kernel takes in more than they can read.

Interrupts go before programs. A little beyond its PDR an end host spends on taking packets in what its receivers would
need to read them, until the kernel hands that work to a thread, which the scheduler weighs against them (Linux:
ksoftirqd). How long that takes is chance, how little they get meanwhile is not. So trials are short, and begin with
empty queues.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from pdrgate.measurands.description import Description, Tolerance
from pdrgate.measurands.measurand import Ask, Measurand, Setting
from pdrgate.measurands.unit_spelling import PACKETS
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial

_DURATION = 0.25
"""Seconds of a trial, in all profiles: a receiver was seen to starve for 50 to 300 ms."""
_LOWEST = 2
"""Loads at which receivers surely starve, where they do."""
_MOST = 2
"""Largest number of trials at a load, disturbed and limited ones included, as a multiple of the count."""


@dataclass(frozen=True, slots=True)
class LeastDelivered(Measurand):
    """The least that is delivered in an eighth of a second at some loads between the PDR and twice it, packets/s.

    Each trial counts with the rate of the half in which the fewest packets are delivered. The rate of the whole trial
    shows when the thread came. The least of all trials is taken, not a median: a burst at the begin of a trial, which
    is the generator's, wakes the thread at once, in as many as half of the trials on a busy machine.

    Where nothing at all is delivered, it is less than one packet in a trial, and that is the value.
    """

    loads: tuple[float, ...]
    """Rising, packets/s."""
    count: int = 3
    """Trials at each of the two lowest loads in a replicate."""
    count_beyond: int = 3
    """Trials at each of the other loads in a replicate, where a thread mostly comes at once."""

    about = Description(
        "least delivered past the PDR", PACKETS, "higher",
        "the least that programs get in an eighth of a second, at loads between the PDR and twice it",
        tolerance=Tolerance(least=0.25),  # a per cent of the cost of taking packets in is eight of it
    )  # fmt: skip

    @classmethod
    def of(cls, setting: Setting) -> Self | None:
        return cls(setting.past, *setting.past_trials) if setting.past else None

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        made = {load: [one for one in _past(trials) if one.intended_load == load] for load in self.loads}
        # Trials that were not sound are repeated, within bounds. They run a round at a time, so what moves meets all
        # loads alike.
        wanting = {
            load: sound
            for load, own in made.items()
            if (sound := sum(one.sound for one in own)) < self._count(load) and len(own) < _MOST * self._count(load)
        }
        return Ask(min(wanting, key=lambda load: (wanting[load], load)), _DURATION, Phase.PAST) if wanting else None

    def value(self, trials: Sequence[Trial]) -> float | None:
        sound = [one for one in _past(trials) if one.sound and one.intended_load in self.loads]
        if {one.intended_load for one in sound} != set(self.loads):
            return None  # the least may be at a load without a sound trial
        return max(min(one.least_rate for one in sound), 1.0 / _DURATION)

    def _count(self, load: float) -> int:
        """Trials that a load gets."""
        return self.count if load in self.loads[:_LOWEST] else self.count_beyond


def _past(trials: Sequence[Trial]) -> list[Trial]:
    return [one for one in trials if one.occasion.phase == Phase.PAST]
