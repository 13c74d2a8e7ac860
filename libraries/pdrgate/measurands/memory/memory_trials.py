"""What a packet does with memory: of trials in which each access of the SUT's kernel is seen.

They are of emulated guests of one CPU, slow, and tell nothing else. What is counted lies between one packet and the
next, without what the kernel does by itself. Instructions hide it: one that reads a random element of 64 MiB is the
same instruction as one that reads 4 KiB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import ClassVar, Self

from pdrgate.measurands.description import SelfDescribed
from pdrgate.measurands.measurand import TOLD_IN, Ask, Setting
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import MemoryCounts, MemorySeen
from pdrgate.record.trial import Trial

MEMORY_TRIALS = 2
"""Trials of a boot, in the first two boots of each build."""
SENT_AT_ONCE = 2048
"""Packets that are sent at once: more than wait before the guest, which takes a good thousand of them."""


@dataclass(frozen=True, slots=True)
class MemoryTrials:
    """Asks for memory trials where packets were counted at saturation, and builds are compared."""

    packets: int = SENT_AT_ONCE
    count: int = MEMORY_TRIALS

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        if not trials or not trials[0].belonging.side or trials[0].belonging.pair > TOLD_IN:
            return None
        loads = [one.intended_load for one in trials if one.occasion.phase == Phase.SATURATION and one.seen.functions]
        if not loads or sum(one.occasion.phase == Phase.MEMORY for one in trials) >= self.count:
            return None
        return Ask(max(loads), self.packets / max(loads), Phase.MEMORY)


def memory_of(trials: Sequence[Trial]) -> list[MemorySeen]:
    """What was seen of memory in those trials in which it was."""
    return [one.seen.memory for one in trials if one.seen.memory is not None and one.seen.memory.windows]


@dataclass(frozen=True, slots=True)
class OfMemory(SelfDescribed):
    """A measurand that memory trials tell; they are asked for by the first of them."""

    counted: ClassVar[str]
    """The field of `MemoryCounts` that it is."""
    least: ClassVar[float]
    """What a packet may have more of, whatever share of all that is."""
    of_lines: ClassVar[bool] = False
    """Whether it counts the lines whose kinds are known."""

    @classmethod
    def of(cls, setting: Setting) -> Self | None:
        return cls() if setting.memory else None

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        return None

    def value(self, trials: Sequence[Trial]) -> float | None:
        found = [sum(self.by_function(one).values()) for one in memory_of(trials)]
        return median(found) if found else None

    @classmethod
    def by_function(cls, seen: MemorySeen) -> Mapping[str, float]:
        """The value of each function, for a packet."""
        at = MemoryCounts._fields.index(cls.counted)
        return {name: counts[at] / seen.windows for name, counts in seen.functions.items()}
