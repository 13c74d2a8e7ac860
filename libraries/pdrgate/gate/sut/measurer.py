"""Measures trials for a scenario: each is watched, and on disk before anything else happens."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Protocol

from pdrgate.gate.run.resumed_run import EarlierTrials
from pdrgate.history.trials import TrialFile
from pdrgate.measurands import Ask
from pdrgate.observers.reading import nested, without_zeros
from pdrgate.observers.watching import Observation, Observer, watching
from pdrgate.record.phase import SPECIAL, Phase
from pdrgate.record.stretch import Belonging, Occasion, Seen
from pdrgate.record.trial import Trial
from pdrgate.values.errors import PdrGateError


class Traffic(Protocol):
    """What the traffic of a scenario's trials comes from: a generator, or the programs of a closed loop."""

    def describe(self) -> dict[str, str]:
        """Entries that identify the source of the traffic: ``name``, ``engine`` and others."""

    def led_in(self, ask: Ask) -> AbstractContextManager[object]:
        """What is done around a trial and not watched."""

    def trial(self, ask: Ask) -> Trial:
        """The traffic of one trial, as it is asked for. Raises TestbedError."""

    def finished(self, trial: Trial) -> Trial:
        """A trial that was watched, as it goes to disk. Raises SutError where it cannot be true."""

    def counts(self, phase: Phase, replicate: int) -> bool:
        """Whether the functions of the SUT's kernel are counted in trials of a phase."""

    def close(self) -> None:
        """End it; may be called twice."""


class Measurer:
    """A scenario's way from what is asked for to a trial that is on disk.

    Args:
        observers: what watches each trial.
        counting: what does besides, within these, where functions are to be counted.
        during: what does besides in trials of a phase.
        earlier: those of the run that is resumed. One that belongs to the same is taken as long as what is asked for
            next is what was measured next; no traffic is sent then.
        on_trial: gets each, and whether it is an earlier one.
        check: called when a fresh one is on disk, or none came of it; raises when the SUT has died of it.
    """

    def __init__(
        self,
        traffic: Traffic,
        observers: Sequence[Observer],
        file: TrialFile,
        belonging: Belonging,
        *,
        counting: Sequence[Observer] = (),
        during: Mapping[Phase, Sequence[Observer]] = MappingProxyType({}),
        earlier: EarlierTrials | None = None,
        on_trial: Callable[[Trial, bool], None] = lambda trial, replayed: None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._traffic = traffic
        self._observers = tuple(observers)
        self._file = file
        self._belonging = belonging
        self._counting = tuple(counting)
        self._during = during
        self._earlier = EarlierTrials() if earlier is None else earlier
        self._on_trial = on_trial
        self._check = check
        self.made: list[Trial] = []
        """All of the scenario so far, earlier ones included."""

    def measure(self, ask: Ask, goal: str = "", repeat: int = 0) -> Trial:
        """One trial: an earlier one where there is one, else a fresh one. Raises what traffic and disk raise."""
        earlier = self._replayed(ask, repeat)
        trial = earlier or self._fresh(ask, goal, repeat)
        self.made.append(trial)
        self._on_trial(trial, earlier is not None)
        return trial

    def take(self, known: Trial) -> None:
        """Have a trial that was made for another scenario count for this one, and be on disk as its own."""
        self.made.append(self._keep(dataclasses.replace(known, belonging=self._belonging)))

    def _fresh(self, ask: Ask, goal: str, repeat: int) -> Trial:
        phase = ask.phase
        more = self._counting if self._traffic.counts(phase, max(self._belonging.pair, repeat)) else ()
        watchers = (*self._observers, *more, *self._during.get(phase, ()))
        with sut_blamed(self._check):
            with self._traffic.led_in(ask), watching(watchers) as watch:
                trial = self._traffic.trial(ask)
            observation = watch.observation
        seen = _seen(observation, trial.seen, phase)
        if not self._wants_callers(phase):
            seen = dataclasses.replace(seen, callers={})
        occasion = Occasion(repeat, goal, phase, trial.occasion.started)
        trial = dataclasses.replace(trial, seen=seen, belonging=self._belonging, occasion=occasion)
        return self._keep(self._traffic.finished(trial))

    def _replayed(self, ask: Ask, repeat: int) -> Trial | None:
        if ask.phase == Phase.DROPS:  # what was stored before and after it is one way
            return None
        return self._earlier.next(self._belonging, (ask.phase, repeat, ask.window or ask.load, ask.duration))

    def _wants_callers(self, phase: Phase) -> bool:
        """Whether it is the first trial at saturation of a build's first replicate: callers are the same in all."""
        first = not any(one.occasion.phase == Phase.SATURATION for one in self.made)
        return phase == Phase.SATURATION and self._belonging.pair <= 1 and first

    def _keep(self, made: Trial) -> Trial:
        self._file.append(made)
        self._check()
        return made


@contextlib.contextmanager
def sut_blamed(check: Callable[[], None]) -> Iterator[None]:
    """What fails within may have failed because the SUT has died, which takes its ports along: that says more.

    Args:
        check: raises when the SUT has died.
    """
    try:
        yield
    except PdrGateError:
        check()
        raise


def _seen(observed: Observation, by_traffic: Seen, phase: Phase) -> Seen:
    """What was seen of a trial: a generator may have counters of its own, and say what disturbed it."""
    before, after = without_zeros(observed.before, observed.after)
    return Seen(
        latency=by_traffic.latency,
        counters_before={**nested(before), **by_traffic.counters_before},
        counters_after={**nested(after), **by_traffic.counters_after},
        functions=observed.functions,
        stacks=observed.stacks,
        memory=observed.memory,
        callers=observed.callers,
        counted=observed.counted,
        # Who calls whom, and touches what, does not depend on how late the machine is, and to see it makes it late.
        disturbed=() if phase in SPECIAL else (*by_traffic.disturbed, *observed.disturbed),
    )
