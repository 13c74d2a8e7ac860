"""Measures trials for a scenario: traffic, who watches it, and the trial on disk before anything else happens."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from pdrgate.errors import PdrGateError, SutError
from pdrgate.gate.run.resumed_run import Belonging, EarlierStretches
from pdrgate.history.trials import TrialFile
from pdrgate.measurands.latency import probe_rate
from pdrgate.measurands.measurand import LATENCY, is_counted
from pdrgate.observers.reading import nested, without_zeros
from pdrgate.observers.tap_counts import taken_from_taps
from pdrgate.observers.watching import Observer, watching
from pdrgate.phase import Phase
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.generator import Generator
from pdrgate.trial import Trial


class Measurer:
    """One scenario's way from an intended load to a trial that is on disk.

    Args:
        observers: what watches each trial.
        counting: what does besides, within these, where the trial is to tell what a packet costs.
        tracing: the same where it is to tell who called whom.
        earlier: trials of the run that is resumed. Those that belong to the same are taken as long as what is asked
            for next is what was measured next; no traffic is sent then.
        on_trial: told each trial, and whether it is an earlier one.
        kept: what of a fresh trial is worth keeping: the frames that a generator took whole are many.
        check: called when a fresh trial is on disk, or none came of it; raises when the SUT has died of it.
        lead_in: called before a fresh trial of a load, while nobody watches.
        busy: has a program use the SUT's CPU, around trials in which nothing is sent.
        can_probe: whether packets may be latency probes, also where latency is only told.
    """

    def __init__(
        self,
        generator: Generator,
        frames: Frames,
        observers: Sequence[Observer],
        file: TrialFile,
        belonging: Belonging,
        *,
        counting: Sequence[Observer] = (),
        tracing: Sequence[Observer] = (),
        earlier: EarlierStretches[Trial] | None = None,
        on_trial: Callable[[Trial, bool], None] = lambda trial, replayed: None,
        kept: Callable[[Trial], Trial] = lambda trial: trial,
        check: Callable[[], None] = lambda: None,
        lead_in: Callable[[float, Phase], None] = lambda load, phase: None,
        busy: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext,
        can_probe: bool = True,
    ) -> None:
        self._generator = generator
        self._frames = frames
        self._observers = tuple(observers)
        self._counting = tuple(counting)
        self._tracing = tuple(tracing)
        self._file = file
        self._belonging = belonging
        self._earlier = EarlierStretches[Trial]() if earlier is None else earlier
        self._on_trial = on_trial
        self._kept = kept
        self._check = check
        self._lead_in = lead_in
        self._busy = busy
        self._can_probe = can_probe
        self.trials: list[Trial] = []
        """All trials of the scenario so far, earlier ones included."""

    def measure(self, load: float, duration: float, phase: Phase, goal: str = "", repeat: int = 0) -> Trial:
        """One trial at ``load`` packets/s for ``duration`` seconds; in the phase `Phase.IDLE` nothing is sent.

        Raises what the generator and the disk raise.
        """
        replayed = self._replay(load, duration, phase, repeat)
        trial = replayed or self._fresh(load, duration, phase, goal, repeat)
        self.trials.append(trial)
        self._on_trial(trial, replayed is not None)
        return trial

    def _fresh(self, load: float, duration: float, phase: Phase, goal: str, repeat: int) -> Trial:
        try:
            self._lead_in(load, phase)
            resting = phase == Phase.IDLE
            counted = is_counted(phase, max(self._belonging.pair, repeat))
            more = self._counting if counted else self._tracing if phase == Phase.PATH else ()
            observers = (*self._observers, *more)
            frames = self._frames_of(load, phase)
            with self._busy() if resting else contextlib.nullcontext(), watching(observers) as watch:
                trial = _rest(duration) if resting else self._generator.trial(load, duration, frames)
            observed = watch.observation
            before, after = without_zeros(observed.before, observed.after)
        except PdrGateError:
            # A SUT that has died takes its ports along: that it died says more than that they are gone.
            self._check()
            raise
        trial = dataclasses.replace(
            self._kept(trial),
            counters_before={**nested(before), **trial.counters_before},  # a generator may have counters of its own
            counters_after={**nested(after), **trial.counters_after},
            functions=observed.functions,
            stacks=observed.stacks,
            counted=observed.counted,
            # Who calls whom does not depend on how late the machine is, and to follow calls makes it late.
            disturbed=() if phase == Phase.PATH else (*trial.disturbed, *observed.disturbed),
            phase=phase,
            goal=goal,
            repeat=repeat,
            **dataclasses.asdict(self._belonging),
        )
        taken = taken_from_taps(trial)
        if taken is not None and trial.forwarded > taken:
            raise SutError(
                f"the SUT is said to have had {trial.forwarded} packets of a trial, and {taken} were taken from the "
                "queues before it: what its side tells is not true; is its kernel to be trusted?"
            )
        self._file.append(trial)
        self._check()
        return trial

    def _frames_of(self, load: float, phase: Phase) -> Frames:
        """Trials that tell latency have probes, also where nobody asked for them in all trials."""
        asked = phase in LATENCY or (phase == Phase.SOAK and self._can_probe)
        if not asked or self._frames.probe_rate:
            return self._frames
        return dataclasses.replace(self._frames, probe_rate=probe_rate(load))

    def _replay(self, load: float, duration: float, phase: Phase, repeat: int) -> Trial | None:
        if phase == Phase.DROPS:  # what was stored before and after it is one way
            return None
        return self._earlier.next(self._belonging, (phase, repeat, load, duration))


def _rest(duration: float) -> Trial:
    """A trial in which nothing is sent."""
    started = time.time()
    time.sleep(duration)
    return Trial(intended_load=0.0, intended_duration=duration, offered=0, forwarded=0, started=started)
