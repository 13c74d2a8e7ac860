"""What a packet does with memory: of trials in which each access of the SUT's kernel is seen.

They run in emulated guests of one CPU, are slow, and measure nothing else. What is counted lies between one packet and
the next, without what the kernel does by itself. Instructions do not show it: one that reads a random element of 64 MiB
is the same instruction as one that reads 4 KiB.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdrgate.measurands.measurand import REPORT_ONLY_IN, Ask
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import MemorySeen
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
        if not trials or not trials[0].belonging.side or trials[0].belonging.pair > REPORT_ONLY_IN:
            return None
        loads = [one.intended_load for one in trials if one.occasion.phase == Phase.SATURATION and one.seen.functions]
        if not loads or sum(one.occasion.phase == Phase.MEMORY for one in trials) >= self.count:
            return None
        return Ask(max(loads), self.packets / max(loads), Phase.MEMORY)


def memory_of(trials: Sequence[Trial]) -> list[MemorySeen]:
    """What was seen of memory in those trials in which it was."""
    return [one.seen.memory for one in trials if one.seen.memory is not None and one.seen.memory.windows]
