"""Others use the SUT's CPUs while it is measured: the first thing to know of a measurement that is not stable.

They are looked for trial by trial: on the average of a run half a second that was lost in one trial is nothing.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from pdrgate.observers.reading import Place
from pdrgate.record.trial import Trial

_NOTEWORTHY = 0.02
"""Share of a CPU's time that others had. At 1 Mpps this is the difference between 4096 and 20000 packets waiting."""

_WHO = (
    ("process_ticks", "other processes", 1),
    ("other_ticks", "other processes", 4),
    ("steal_ticks", "the hypervisor's other guests", 1),
)
"""Counters, who is behind them, and ticks of one trial that are nobody's: time is counted in whole ticks, and reading
the counters of a guest takes some of the CPU that QEMU has."""


@dataclass(frozen=True, slots=True)
class Interference:
    """What somebody had of one of the SUT's CPUs; shares of the trials' time."""

    who: str
    cpu: int
    worst: float
    """The share in the trial that was touched most."""
    average: float
    touched: int
    """Trials in which it was more than nothing."""
    trials: int

    def __str__(self) -> str:
        """``other processes had up to 50% of CPU 1 in 3 of 36 trials, 12% on average``."""
        if self.trials == 1:
            return f"{self.who} had {self.worst:.0%} of CPU {self.cpu}"
        return (
            f"{self.who} had up to {self.worst:.0%} of CPU {self.cpu} in {self.touched} of {self.trials} trials, "
            f"{self.average:.{0 if self.average >= _NOTEWORTHY else 1}%} on average"
        )


def interference(trials: Sequence[Trial], cpus: Collection[int]) -> str:
    """The worst of each kind as a clause, see `Interference`; empty when nobody disturbed or nothing is known."""
    return " and ".join(map(str, interferences(trials, cpus)))


def interferences(trials: Sequence[Trial], cpus: Collection[int]) -> tuple[Interference, ...]:
    """What others had of the SUT's CPUs; of each kind only the CPU with the trial that was touched most."""
    found = []
    for name, who, nobodys in _WHO:
        of_cpus = [one for cpu in cpus for one in _of_cpu(trials, cpu, name, who, nobodys)]
        if of_cpus:
            found.append(max(of_cpus, key=lambda one: (one.worst, one.average)))
    return tuple(found)


def taken(trial: Trial, cpus: Collection[int]) -> float:
    """The share of a trial's time that others had, of the CPU where they had most; also what may be nobody's."""
    second = os.sysconf("SC_CLK_TCK") * trial.seconds
    changes = trial.seen.counter_changes
    ticks = [sum(changes.get(str(Place("cpu", str(cpu))), {}).get(name, 0) for name, _, _ in _WHO) for cpu in cpus]
    return min(1.0, max(ticks, default=0) / second) if second else 0.0


def _of_cpu(trials: Sequence[Trial], cpu: int, name: str, who: str, nobodys: int) -> Iterator[Interference]:
    if name == "process_ticks":
        # Where programs of the SUT's own receive, their time is in it and cannot be distinguished from that of others.
        trials = [trial for trial in trials if not receives(trial)]
    place, second = str(Place("cpu", str(cpu))), os.sysconf("SC_CLK_TCK")
    ticks = [trial.seen.counter_changes.get(place, {}).get(name, 0) for trial in trials]
    seconds = [trial.seconds for trial in trials]
    shares = [min(1.0, gain / second / time) if time else 0.0 for gain, time in zip(ticks, seconds, strict=True)]
    touched = [share for gain, share in zip(ticks, shares, strict=True) if gain > nobodys and share >= _NOTEWORTHY]
    if touched:
        yield Interference(who, cpu, max(touched), sum(ticks) / second / sum(seconds), len(touched), len(trials))


def receives(trial: Trial) -> bool:
    """Whether programs of the SUT's own had its CPUs too."""
    return trial.closed_loop or str(Place("receiver", "0")) in trial.seen.counters_after
