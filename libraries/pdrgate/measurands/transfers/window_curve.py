"""The window curve: what throughput larger windows bring, and the knee from which on they bring round trips instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from pdrgate.measurands.measurand import Ask
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial

_PLATEAU = 0.9
"""A share of the most that any window brings: the least window with as much is the knee."""
MOST_SWEEPS = 4
_NEIGHBOURS = 2.0
"""The factor by which knees of two sweeps that agree may differ: windows are doubled from one to the next."""


@dataclass(frozen=True, slots=True)
class WindowCurve:
    """Sweeps over some windows, up and down in turn, until two in a row agree on the knee: one may be anybody's.

    A single pass shows dips that no second one repeats (SLAC: "instantaneous external effects such as cross-traffic").
    """

    windows: tuple[int, ...]
    """Rising, each about twice the one before; bytes."""
    duration: float
    """Seconds of each transfer."""

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        made = [one for one in trials if one.occasion.phase == Phase.CURVE]
        knees, left = self.knees(made), len(made) % len(self.windows)
        if not left and (len(knees) >= MOST_SWEEPS or agree(knees)):
            return None
        down = len(knees) % 2 == 1
        order = self.windows[::-1] if down else self.windows
        return Ask.of_window(order[left], self.duration, Phase.CURVE)

    def knees(self, trials: Sequence[Trial]) -> tuple[int, ...]:
        """The knee of each whole sweep, bytes."""
        made, step = [one for one in trials if one.occasion.phase == Phase.CURVE], len(self.windows)
        sweeps = [made[at : at + step] for at in range(0, len(made) // step * step, step)]
        return tuple(knee({one.transfer.window: one.transfer.throughput for one in sweep}) for sweep in sweeps)

    def knee(self, trials: Sequence[Trial]) -> int | None:
        """The knee of all sweeps together, once two in a row agree; None where they do not."""
        if not agree(self.knees(trials)):
            return None
        rates: dict[int, list[float]] = {}
        for one in trials:
            if one.occasion.phase == Phase.CURVE:
                rates.setdefault(one.transfer.window, []).append(one.transfer.throughput)
        return knee({window: median(found) for window, found in rates.items()})


def knee(rates: Mapping[int, float]) -> int:
    """The least window that brings nine tenths of the most that any does; throughput by window."""
    plateau = _PLATEAU * max(rates.values())
    return min(window for window, rate in rates.items() if rate >= plateau)


def agree(knees: Sequence[int]) -> bool:
    """Whether the last two sweeps have the same knee, or neighbours."""
    if len(knees) < 2:
        return False
    low, high = sorted(knees[-2:])
    return high <= _NEIGHBOURS * low
