"""A heartbeat on a CPU that forwards packets: whether that CPU was all there while a trial was measured.

The program (`traffic/native/heartbeat.c`) wakes on that CPU about every 2 ms and does a fixed work of 3 us. Of what it
saw of a trial three things say that the machine disturbed, and a SUT that is slower or flips causes none of them:

- *stalls*: not even the timer's interrupt came. Nothing of this kernel ran, or its interrupts were off.
- *withheld*: packet work was ready to run, and other threads had the CPU.
- *slow beats*: the same work took longer than in the best trials so far; a core that is shared, or clocked down.
  It counts where packet work needs much of the CPU: an idle one forwards no less for being slow, and its beats find
  other caches.

A beat that is late while packet work itself runs is none of these.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import msgspec

from pdrgate.observers.reading import Counter, Place, Reading
from pdrgate.observers.watching import Observation, Observer
from pdrgate.record.cause import Cause, CauseKind
from pdrgate.this_process.asked_program import AskedProgram, LostProgramError
from pdrgate.this_process.checkout import BUILT_ANEW
from pdrgate.traffic import native
from pdrgate.values.errors import TestbedError, closed_on_error

MOST_WITHHELD = 0.01
"""A share of a trial's time: twice the loss ratio that a PDR usually accepts."""
LONGEST_WITHHELD = 5e-3
"""Seconds. At 1 Mpps more packets than a receive buffer of 4096 bridges."""
MOST_WAITED = 0.08
"""A share of a trial's time that packet work waited in small parts. A quiet machine has some: beats, and what they
wake."""
SLOWEST_ARITHMETIC, SLOWEST_LOADS = 0.08, 0.12
"""Parts by which the median beat may be slower than the reference. Loads are a hint only: a SUT that forwards three
times as many packets makes them slower by a tenth, for it leaves less in the caches. What slows them by a quarter
takes a tenth of the rate or less."""
_CHANCE = 4.0
"""Standard errors of a trial's median by which loads may be slower besides: beats differ by a fifth or more in what
they find in the caches, and the best of many trials is two below what is usual."""
UNSEEN = 1.0 - (1.0 - MOST_WITHHELD - MOST_WAITED) / (1.0 + 2 * SLOWEST_LOADS)
"""The largest part of its rate that all of these together take from a trial that passes for sound: a SUT that does
nothing but loads, at as many beats as a trial of 0.1 s has."""
_MEDIAN_ERROR, _Q90 = 1.2533, 1.2816
"""The standard error of a median of n values, in deviations over the root of n; the 90 % quantile, in deviations."""
_REFERENCE = 0.05
"""Quantile of the beats of all trials so far that is the reference: the fastest of few may be a stroke of luck."""
_FEWEST_BEATS = 20
_BUSY = 0.3
_NS = 1e9
_PATIENCE = 10.0
"""Seconds until a program that does not answer is taken for dead."""


@dataclass(frozen=True, slots=True)
class Watched:
    """Heartbeat of a CPU during a trial; times in ns."""

    elapsed: int
    beats: int
    missed: int
    """Beats for which it was too late."""
    stalls: int
    stalled: int
    """Sum of the times that not even the timer's interrupt came, each of over 8 ms: packet work in
    an interrupt may hold a beat up for less, and is the SUT's."""
    longest_stall: int
    withheld: int
    """Sum of the times that neither a beat nor packet work could run for another thread, each of over 3 ms."""
    longest_withheld: int
    longest_wait: int
    """The longest that a beat was ready and did not run."""
    arithmetic_median: int
    arithmetic_q90: int
    loads_median: int
    loads_q90: int
    own_time: int
    """Time of the CPU that the heartbeat took, and packet work by interrupts meanwhile."""
    packets_ran: int
    """Time of the thread that does packet work, `ksoftirqd`."""
    packets_waited: int
    """Time that `ksoftirqd` was ready and did not run."""

    @classmethod
    def of(cls, record: dict[str, Any]) -> Self:
        """The program's answer. Raises TestbedError when it is another's."""
        try:
            return msgspec.convert(record, cls)
        except msgspec.ValidationError as error:
            raise TestbedError(f"the heartbeat's answer is not of this version: {error}; {BUILT_ANEW}") from error

    @property
    def waited(self) -> float:
        """Part of the time that packet work was ready and did not run, but for the heartbeat."""
        return max(0, self.packets_waited - self.own_time) / max(1, self.elapsed)

    @property
    def loads_error(self) -> float:
        """Standard error of the median of the loads, as a part of it."""
        deviation = max(0, self.loads_q90 - self.loads_median) / _Q90
        return _MEDIAN_ERROR * deviation / math.sqrt(max(1, self.beats)) / max(1, self.loads_median)

    @property
    def busy(self) -> bool:
        """Whether packet work needed so much of the CPU that a thread did it."""
        return self.packets_ran > _BUSY * self.elapsed

    def reading(self, cpu: int) -> Reading:
        """The counters of a trial that begin at 0."""
        record: dict[str, int] = msgspec.to_builtins(self)
        return {Counter(Place("heartbeat", str(cpu)), name): value for name, value in record.items()}


@dataclass(frozen=True, slots=True)
class BeatSlowdown:
    """Parts by which the work of a trial's median beat took longer than at its best; 0 if it did not, or where that may
    be chance."""

    arithmetic: float = 0.0
    loads: float = 0.0


class Pace:
    """Speed of beats at this machine's best, as far as the trials of a scenario show it."""

    def __init__(self) -> None:
        self._arithmetic: list[int] = []
        """Time of the arithmetic in each trial so far, in ns and sorted."""
        self._loads: list[int] = []

    def slowdown(self, watched: Watched) -> BeatSlowdown:
        """The slowdown of a busy trial's beats against the reference, this trial included."""
        if watched.beats < _FEWEST_BEATS or not watched.busy:
            return BeatSlowdown()
        loads = _slower(self._loads, watched.loads_median)
        return BeatSlowdown(
            _slower(self._arithmetic, watched.arithmetic_median),
            loads if loads > SLOWEST_LOADS + _CHANCE * watched.loads_error else 0.0,
        )


def _slower(known: list[int], took: int) -> float:
    """The part by which ``took`` is longer than the reference of ``known``. ``took`` is added to ``known``."""
    bisect.insort(known, took)
    return max(0.0, took / max(1, known[int(_REFERENCE * len(known))]) - 1.0)


def disturbance(watched: Watched, cpu: int, slowdown: BeatSlowdown, *, shared: bool = False) -> tuple[Cause, ...]:
    """Causes for which a watched trial says nothing about the SUT; empty for a sound trial.

    Args:
        shared: whether programs of the SUT's own have the CPU too: packet work that waits for them is the SUT's.
    """
    elapsed = max(1, watched.elapsed)
    found = []
    if watched.stalls:
        part, longest = watched.stalled / elapsed, watched.longest_stall / 1e6
        words = f"CPU {cpu} stood still for up to {longest:.1f} ms, {part:.1%} of the trial"
        found.append(Cause(CauseKind.STOOD_STILL, part, words))
    if shared:
        pass
    elif watched.withheld > MOST_WITHHELD * elapsed or watched.longest_withheld > LONGEST_WITHHELD * _NS:
        part, longest = watched.withheld / elapsed, watched.longest_withheld / 1e6
        words = f"others had CPU {cpu} for up to {longest:.1f} ms, {part:.1%} of the trial, while packets waited"
        found.append(Cause(CauseKind.WITHHELD, part, words))
    elif watched.waited > MOST_WAITED:
        words = f"packets waited for {watched.waited:.1%} of the trial while others had CPU {cpu}"
        found.append(Cause(CauseKind.WAITED, watched.waited, words))
    if slowdown.arithmetic > SLOWEST_ARITHMETIC:
        words = f"CPU {cpu} was slower by {slowdown.arithmetic:.0%} than at its best"
        found.append(Cause(CauseKind.SLOWER, slowdown.arithmetic, words))
    elif slowdown.loads > SLOWEST_LOADS:
        words = f"CPU {cpu} reached its memory slower by {slowdown.loads:.0%} than at its best"
        found.append(Cause(CauseKind.SLOWER_MEMORY, slowdown.loads, words))
    return tuple(found)


class Heartbeat:
    """The program on one CPU, from `__init__` to `close`.

    Raises:
        TestbedError: it cannot be built, or this machine lets nobody have a real-time thread.
    """

    def __init__(self, cpu: int) -> None:
        self.cpu = cpu
        self._program = AskedProgram((str(native.build().heartbeat), str(cpu)))
        with closed_on_error(self.close):
            self._answer()

    def turn(self) -> dict[str, Any]:
        """Begin a watch, or end the one that is on; what was seen, when one was. Raises TestbedError when it died."""
        return self._answer(b"\n")

    def close(self) -> None:
        """End it. Calling it twice is harmless."""
        self._program.kill()

    def _answer(self, asked: bytes = b"") -> dict[str, Any]:
        try:
            self._program.write(asked)
            answer = self._program.answer(_PATIENCE)
        except LostProgramError as lost:
            raise TestbedError(f"the heartbeat on CPU {self.cpu} {lost}; run again") from lost
        if "error" in answer:
            raise TestbedError(f"no heartbeat on CPU {self.cpu}: {answer['error']}")
        return answer


class HeartbeatObserver:
    """Watches the CPUs that forward, each by its heartbeat.

    What it learns of their pace is of one SUT in one scenario: packets that leave more or less in the caches make beats
    that are a little slower or faster, and a build must not be called disturbed for what it does there.

    Args:
        shared: see `disturbance`.
    """

    def __init__(self, heartbeats: Sequence[Heartbeat], *, shared: bool = False) -> None:
        self._heartbeats = tuple(heartbeats)
        self._shared = shared
        self._paces = {one.cpu: Pace() for one in self._heartbeats}

    def begin(self) -> None:
        for one in self._heartbeats:
            one.turn()

    def end(self) -> Observation:
        observation = Observation()
        for one in self._heartbeats:
            watched = Watched.of(one.turn())
            after = watched.reading(one.cpu)
            causes = disturbance(watched, one.cpu, self._paces[one.cpu].slowdown(watched), shared=self._shared)
            observation |= Observation(dict.fromkeys(after, 0), after, disturbed=causes)
        return observation


class HeartbeatWatch:
    """A testbed's heartbeats: begun on a CPU when it first forwards; those of CPUs that no longer do stay, and wait."""

    def __init__(self) -> None:
        self._heartbeats: dict[int, Heartbeat] = {}
        self.missing = ""
        """Why there are none, in a sentence; empty while there may be."""

    def observers(self, cpus: Sequence[int], *, shared: bool = False) -> tuple[Observer, ...]:
        """Observers of a trial on these CPUs; empty if no heartbeat can be: a container may have no real-time
        threads."""
        try:
            for cpu in () if self.missing else cpus:
                if cpu not in self._heartbeats:
                    self._heartbeats[cpu] = Heartbeat(cpu)
        except TestbedError as error:
            self.missing = f"{error}; whether the machine disturbs a trial is not seen"
        if self.missing:
            return ()
        return (HeartbeatObserver([self._heartbeats[cpu] for cpu in cpus], shared=shared),)

    def describe(self) -> dict[str, str]:
        """Properties that results need in common to be comparable: a heartbeat takes its share of the CPU, little as
        that is."""
        return {} if self.missing else {"heartbeat": "2 ms"}

    def close(self) -> None:
        """End the heartbeats. Calling it twice is harmless."""
        for heartbeat in self._heartbeats.values():
            heartbeat.close()
