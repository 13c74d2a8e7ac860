"""Measures trials for a scenario: traffic, counters around it, and the trial on disk before anything else happens."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from pdrgate.errors import PdrGateError
from pdrgate.history.trials import TrialFile
from pdrgate.observers.counters import without_zeros
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.generator import Generator
from pdrgate.trial import Trial, placed


class Measurer:
    """One scenario's way from an intended load to a trial that is on disk.

    Args:
        earlier: trials of this scenario and boot from a run that is resumed, in measured order. While what is asked
            for next is what was measured next, the earlier trial is the answer and no traffic is sent.
        on_trial: told each trial, and whether it is an earlier one.
        check: called when a fresh trial is on disk, or none came of it; raises when the SUT has died of it.
    """

    def __init__(
        self,
        generator: Generator,
        frames: Frames,
        counters: Callable[[], Mapping[str, int]],
        file: TrialFile,
        *,
        scenario: str,
        boot: str,
        earlier: Sequence[Trial] = (),
        on_trial: Callable[[Trial, bool], None] = lambda trial, replayed: None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._generator = generator
        self._frames = frames
        self._counters = counters
        self._file = file
        self._scenario = scenario
        self._boot = boot
        self._earlier = list(earlier)
        self._on_trial = on_trial
        self._check = check
        self.trials: list[Trial] = []
        """All trials of the scenario so far, earlier ones included."""

    def measure(self, load: float, duration: float, phase: str) -> Trial:
        """One trial at ``load`` packets/s for ``duration`` seconds. Raises what the generator and the disk raise."""
        replayed = self._replay(load, duration, phase)
        trial = replayed or self._fresh(load, duration, phase)
        self.trials.append(trial)
        self._on_trial(trial, replayed is not None)
        return trial

    def _fresh(self, load: float, duration: float, phase: str) -> Trial:
        self._earlier.clear()  # from here on the run goes its own way
        try:
            before = self._counters()
            trial = self._generator.trial(load, duration, self._frames)
            before, after = without_zeros(before, self._counters())
        except PdrGateError:
            # A SUT that has died takes its ports along: that it died says more than that they are gone.
            self._check()
            raise
        trial = dataclasses.replace(
            trial,
            counters_before={**placed(before), **trial.counters_before},  # a generator may have counters of its own
            counters_after={**placed(after), **trial.counters_after},
            scenario=self._scenario,
            boot=self._boot,
            phase=phase,
        )
        self._file.append(trial)
        self._check()
        return trial

    def _replay(self, load: float, duration: float, phase: str) -> Trial | None:
        if not self._earlier:
            return None
        first = self._earlier[0]
        if (first.phase, first.intended_load, first.intended_duration) != (phase, load, duration):
            return None
        return self._earlier.pop(0)
