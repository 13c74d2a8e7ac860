"""Traffic of a closed loop: streams of TCP offer what they get acknowledged."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from pdrgate.gate.run.scenario import Scenario
from pdrgate.measurands import Ask
from pdrgate.observers.watching import Observer, watching
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.testbeds import Testbed
from pdrgate.traffic.generator import ClosedLoop

_WARMING = 1.0
"""Seconds of a transfer that nobody counts, the shortest there is."""


class ClosedLoopTraffic:
    """What the programs of a closed loop move."""

    def __init__(self, loop: ClosedLoop) -> None:
        self.loop = loop

    def see_it_pass(self, scenario: Scenario, testbed: Testbed, counting: Sequence[Observer]) -> None:
        """Begin the loop, and move what nobody counts. Raises TestbedError."""
        testbed.end_generator()
        if testbed.steady and scenario.streams is not None:
            # Code is translated when it runs first, and once more when it is counted first: a boot's first transfer
            # found its CPU 8 % late, and 2 % after one that was not counted.
            with watching(counting):
                self.loop.transfer(scenario.window, _WARMING)

    def describe(self) -> dict[str, str]:
        return self.loop.describe()

    def led_in(self, ask: Ask) -> AbstractContextManager[object]:
        return nullcontext()

    def trial(self, ask: Ask) -> Trial:
        return self.loop.transfer(ask.window, ask.duration, ask.rate)

    def finished(self, trial: Trial) -> Trial:
        return trial

    def counts(self, phase: Phase, replicate: int) -> bool:
        """Whether functions are counted in trials of a phase: in repeats, for the cost of a byte."""
        return phase == Phase.REPEAT

    def close(self) -> None:
        self.loop.close()
