"""Measures trials for a scenario, by a generator."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType

from pdrgate.gate.run.resumed_run import EarlierStretches
from pdrgate.gate.sut.measurer import Measurer, seen_by
from pdrgate.history.trials import TrialFile
from pdrgate.measurands.measurand import LATENCY, is_counted
from pdrgate.measurands.rates.latency import probe_rate
from pdrgate.observers.fates import by_fate
from pdrgate.observers.tap_counts import taken_from_taps
from pdrgate.observers.watching import Observer
from pdrgate.record.fate import Fate
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import Belonging, Occasion
from pdrgate.record.trial import Trial
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.generator import Generator
from pdrgate.values.errors import SutError


class TrialMeasurer(Measurer[Trial]):
    """A `Measurer` of trials. Those that tell what a packet costs have their functions counted.

    Args:
        replacing: what replaces something on the SUT besides, where a trial is to tell what that takes.
        tracing: what watches besides where a trial is to tell who called whom.
        seeing_memory: the same where it is to tell what is touched.
        in_lockstep: the same of trials in which CPUs execute in turn.
        kept: what of a fresh trial is worth keeping: the frames that a generator took whole are many.
        lead_in: called before a fresh trial of a load, while nobody watches.
        busy: has a program use the SUT's CPU, around trials in which nothing is sent.
        fate: what counts as handled.
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
        seeing_memory: Sequence[Observer] = (),
        in_lockstep: Mapping[Phase, Sequence[Observer]] = MappingProxyType({}),
        replacing: Sequence[Observer] = (),
        earlier: EarlierStretches[Trial] | None = None,
        told: Callable[[Trial, bool], None] = lambda trial, replayed: None,
        kept: Callable[[Trial], Trial] = lambda trial: trial,
        check: Callable[[], None] = lambda: None,
        lead_in: Callable[[float, Phase], None] = lambda load, phase: None,
        busy: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext,
        fate: Fate = "forwarded",
        can_probe: bool = True,
    ) -> None:
        super().__init__(observers, file, belonging, counting=counting, earlier=earlier, told=told, check=check)
        self._generator = generator
        self._frames = frames
        self._special: Mapping[Phase, Sequence[Observer]] = {
            Phase.PATH: tuple(tracing), Phase.MEMORY: tuple(seeing_memory), **in_lockstep,
        }  # fmt: skip
        self._replacing = tuple(replacing)
        self._kept = kept
        self._lead_in = lead_in
        self._busy = busy
        self._fate = fate
        self._can_probe = can_probe

    def measure(self, load: float, duration: float, phase: Phase, goal: str = "", repeat: int = 0) -> Trial:
        """One trial at ``load`` packets/s for ``duration`` seconds; in the phase `Phase.IDLE` nothing is sent.

        Raises what the generator and the disk raise.
        """
        earlier = self._replay(load, duration, phase, repeat)
        return self._taken(earlier, lambda: self._fresh(load, duration, phase, goal, repeat))

    def _wants_callers(self, phase: Phase) -> bool:
        """Whether it is the first trial at saturation of a build's first replicate: callers are the same in all."""
        first = not any(one.occasion.phase == Phase.SATURATION for one in self.made)
        return phase == Phase.SATURATION and self._belonging.pair <= 1 and first

    def take(self, known: Trial) -> None:
        """Have a trial that was made for another scenario count for this one, and be on disk as its own."""
        self.made.append(self._keep(dataclasses.replace(known, belonging=self._belonging)))

    def _fresh(self, load: float, duration: float, phase: Phase, goal: str, repeat: int) -> Trial:
        with self._blamed():
            self._lead_in(load, phase)
            resting = phase == Phase.IDLE
            counted = is_counted(phase, max(self._belonging.pair, repeat))
            more = self._counting if counted else self._special.get(phase, ())
            more = (*more, *self._replacing) if phase == Phase.REPLACEMENT else more
            frames = self._frames_of(load, phase)
            with self._busy() if resting else contextlib.nullcontext(), self._watching(more) as watch:
                trial = _rest(duration) if resting else self._generator.trial(load, duration, frames)
            observation = watch.observation
        observed, told = seen_by(observation), trial.seen
        seen = dataclasses.replace(  # a generator may have counters of its own, and say what disturbed it
            observed,
            latency=told.latency,
            counters_before={**observed.counters_before, **told.counters_before},
            counters_after={**observed.counters_after, **told.counters_after},
            stacks=observation.stacks,
            memory=observation.memory,
            callers=observation.callers if self._wants_callers(phase) else {},
            counted=observation.counted,
            # Who calls whom, and touches what, does not depend on how late the machine is, and to see it makes it late.
            disturbed=() if phase in self._special else (*told.disturbed, *observed.disturbed),
        )
        trial = dataclasses.replace(
            self._kept(by_fate(dataclasses.replace(trial, seen=seen, belonging=self._belonging), self._fate)),
            occasion=Occasion(repeat, goal, phase, trial.occasion.started),
        )
        taken = taken_from_taps(trial)
        if taken is not None and trial.forwarded > taken:
            raise SutError(
                f"the SUT is said to have had {trial.forwarded} packets of a trial, and {taken} were taken from the "
                "queues before it: what its side tells is not true; is its kernel to be trusted?"
            )
        return self._keep(trial)

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
    return Trial(
        intended_load=0.0, intended_duration=duration, offered=0, forwarded=0, occasion=Occasion(started=started)
    )
