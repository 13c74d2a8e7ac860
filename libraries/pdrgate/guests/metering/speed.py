"""The constant speed of a guest's CPUs: how fast this machine can hold each, and whether it did.

On a shared machine an emulated CPU is as fast as what others leave of the machine, and its throughput scatters by 15 %.
Held at a speed that the machine sustains with margin, it repeats to a few tenths of a percent.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pdrgate.guests.metering.meter import Counts, VcpuMeter
from pdrgate.guests.remembered import Remembered
from pdrgate.observers.reading import Counter, Place, Reading
from pdrgate.observers.watching import Observation
from pdrgate.record.cause import Cause, CauseKind

CpuSpeed = int | Literal["auto", "full"]
"""Instructions/s; ``auto``: a step that this machine sustains; ``full``: as fast as it goes."""

STEPS = (25_000_000, 100_000_000, 400_000_000)
"""Instructions/s. Few and far apart: results at different speeds cannot be compared, and what a machine sustains is not
the same from one hour to the next."""

_SHARE = 0.4
"""Largest share of the unheld speed that a step asks for. Others need the rest of the machine."""

_SHOWN = 0.5
"""Seconds in which a guest shows how fast it is."""

_ENOUGH = 8
"""Trials, to say that a speed cannot be held."""

_BUSY = 3600.0
"""Seconds after which a machine that was too busy for a speed is looked at once more."""

_RUNS = 32
"""Number of runs whose speed is remembered: more than can be under way at once."""

_LATE = 0.002
"""Share of a trial that its CPU may lose: what it forwards is wrong by as much."""

_BEHIND = 0.01
"""Share of a trial by which its CPU may be behind at its end without making good for it."""

_BRIDGED = 0.010
"""Seconds without a CPU that a guest's receive ring bridges: it goes on with what lies there."""
_LONG = 0.01
"""Share of a trial that is long: what is not received at its end is missing in the rate."""
_OFTEN = 0.1
"""Share of a trial without a CPU, in parts that the ring bridges, that shows all the same."""
_DRAINS = 0.040
"""Seconds after sending in which the generator would take the rest for lost: nothing comes for nearly as long as it
waits for more."""
_PATIENCE = 1.0
"""Seconds for what is left of a trial to drain."""


@dataclass(frozen=True, slots=True)
class SpeedChoice:
    """The speed at which guests are held, and why."""

    speed: int
    """Instructions/s; 0: as fast as they go."""
    why: str

    def __str__(self) -> str:
        """``100 MIPS``, ``full``."""
        return f"{self.speed / 1e6:g} MIPS" if self.speed else "full"


@dataclass(frozen=True, slots=True)
class SpeedRecord:
    """The step that ``auto`` means on this machine, found out by its first guest."""

    folder: Path
    run: str = ""
    """Identity of this run: all its guests have one speed, whatever is noted meanwhile."""

    def choose(self, wanted: CpuSpeed, unheld: Callable[[], float]) -> SpeedChoice:
        """The speed for a guest that is up.

        Args:
            unheld: asked where nothing is known of this machine: what the guest executes at full speed,
                instructions/s, see `unheld_speed`.

        Raises:
            StorageError: the choice cannot be noted for the guests after it.
        """
        if wanted == "full":
            return SpeedChoice(0, "asked for")
        if wanted != "auto":
            return SpeedChoice(wanted, "asked for")
        record = self._file.read() or {}
        runs = dict(record.get("runs", {}))
        if self.run in runs:
            return SpeedChoice(int(runs[self.run]), "as this run's first guest")
        if isinstance(record.get("speed"), int) and time.time() < record.get("until", math.inf):
            choice = SpeedChoice(record["speed"], str(record.get("why", "")))
        else:
            shown = unheld()
            speed = max((step for step in STEPS if step <= _SHARE * shown), default=STEPS[0])
            choice = SpeedChoice(speed, f"the first guest here showed {shown / 1e6:.0f} MIPS")
            record = {"speed": choice.speed, "why": choice.why}
            if speed == STEPS[0]:  # perhaps by a moment at which others had the machine
                record["until"] = time.time() + _BUSY
        # Those of long ago have ended.
        newest = [*runs.items(), (self.run, choice.speed)][-_RUNS:] if self.run else list(runs.items())
        self._file.write({**record, "runs": dict(newest)})
        return choice

    def step_down(self, speed: int, late: int, trials: int) -> None:
        """Let ``auto`` mean less for an hour, where a guest could not be held at ``speed`` in most of its trials."""
        lower = step_below(speed)
        if lower and trials >= _ENOUGH and late > trials / 2:
            record = self._file.read() or {}
            why = f"at {SpeedChoice(speed, '')} {late} of {trials} trials were late"
            self._file.write({**record, "speed": lower, "why": why, "until": time.time() + _BUSY})

    @property
    def _file(self) -> Remembered:
        return Remembered(self.folder, "cpu-speed")


def step_below(speed: int) -> int:
    """The next lower step, instructions/s; 0 if there is none."""
    return max((step for step in STEPS if step < speed), default=0)


def unheld_speed(meter: VcpuMeter, busy: Callable[[], AbstractContextManager[object]]) -> float:
    """Instructions/s of the slowest CPU of a guest that is not held, while ``busy`` gives each something to do."""
    with busy():
        before = meter.counts()
        time.sleep(_SHOWN)
        after = meter.counts()
    return min(
        (then.instructions - first.instructions) / (then.time - first.time)
        for first, then in zip(before, after, strict=True)
    )


class SpeedObserver:
    """Holds a guest's CPUs while a trial lasts, and says whether that could be; in between they are as fast as they go.

    What drains after a trial is in no rate: there the CPUs may be let go before the observation ends.

    Args:
        go_first: has the CPUs run before all else of this machine, while they are held, or take turns.
    """

    def __init__(self, meter: VcpuMeter, speed: int, go_first: Callable[[bool], None] = lambda first: None) -> None:
        self._meter = meter
        self._speed = speed
        self._go_first = go_first
        self._before: tuple[Counts, ...] = ()
        self._after: tuple[Counts, ...] = ()
        """When they were let go."""
        self.trials = 0
        self.late = 0
        """Number of trials in which a CPU could not be held."""

    def begin(self) -> None:
        self._meter.hold(self._speed)
        self._go_first(True)
        self._before, self._after = self._meter.counts(), ()

    def let_go(self) -> None:
        """Sending has ended: let the CPUs run as fast as they can from here on."""
        self._after = self._meter.counts()
        self._go_first(False)
        self._meter.hold(0)

    def end(self) -> Observation:
        if not self._before:
            return Observation()
        if not self._after:
            self.let_go()
        before, after = self._before, self._after
        self._before = self._after = ()
        began, sent = before[0].time, after[0].time
        found = [
            _cause(CauseKind.LATE, f"the guest's {name} was late by", late, sent - began)
            for name, late in zip(_names(len(before)), map(self._late, before, after), strict=True)
            if late
        ]
        self.trials += 1
        self.late += bool(found)
        if gaps := self._meter.starved(began):
            if missing := starvation(gaps, began, sent):
                found.append(_cause(CauseKind.STARVED, "QEMU had no CPU for", missing, sent - began))
            if gaps[-1][1] > sent:
                self._meter.rest(_PATIENCE)  # what the generator gave up must not come into the next trial
        return Observation(_reading(before), _reading(after), disturbed=tuple(found))

    def _late(self, before: Counts, after: Counts) -> float:
        """Seconds that a CPU was late by; 0 if they do not matter."""
        lost, passed = after.lost - before.lost, after.time - before.time
        executed = (after.instructions - before.instructions) / self._speed
        behind = passed - (after.halted - before.halted) - executed
        return max(lost, behind) if lost > _LATE * passed or behind > _BEHIND * passed else 0.0


def starvation(gaps: Sequence[tuple[float, float]], began: float, sent: float) -> float:
    """Seconds without a CPU that show in what a trial counted; 0 if they do not.

    A virtual CPU that has nothing to do is not late, and neither is one that QEMU's main loop hands no packets for want
    of a CPU of its own.

    Args:
        gaps: times in which QEMU wanted to run and could not, from and to.
        began: when sending began, and...
        sent: when it ended, on the same clock.
    """
    inside = [(max(begin, began), min(end, sent)) for begin, end in gaps if begin < sent and end > began]
    lengths = [end - begin for begin, end in inside]
    long = _LONG * (sent - began)
    at_end = any(end >= sent and end - begin > long for begin, end in inside)
    if at_end or max(lengths, default=0.0) > max(_BRIDGED, long) or sum(lengths) > _OFTEN * (sent - began):
        return sum(lengths)
    after = max((end - max(begin, sent) for begin, end in gaps), default=0.0)
    return after if after > _DRAINS else 0.0


def _cause(kind: CauseKind, what: str, missing: float, passed: float) -> Cause:
    return Cause(kind, missing / passed, f"{what} {missing * 1e3:.0f} of {passed * 1e3:.0f} ms")


def _names(cpus: int) -> tuple[str, ...]:
    """Names of a guest's CPUs; its only one has no number."""
    return ("CPU",) if cpus == 1 else tuple(f"CPU {cpu}" for cpu in range(cpus))


def _reading(by_cpu: Sequence[Counts]) -> Reading:
    reading: dict[Counter, int] = {}
    for cpu, counts in enumerate(by_cpu):
        place = Place("vcpu", str(cpu))
        reading |= {
            Counter(place, "instructions"): counts.instructions,
            Counter(place, "halted_us"): round(counts.halted * 1e6),
            Counter(place, "held_us"): round(counts.held * 1e6),
            Counter(place, "lost_us"): round(counts.lost * 1e6),
        }
    return reading
