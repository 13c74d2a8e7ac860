"""At which loads to repeat trials, and in which order."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from pdrgate.record.trial import Trial
from pdrgate.stability.curve import LoadLossCurve

_FURTHER = 1.2
_CURVE = 2.0
"""Times what a SUT can take that the highest load of a curve is, about."""
_PAST = (1.2, 1.25, 1.5, 1.75)
"""Times the PDR, about: where receivers starve (in Linux up to 1.35 times it), and where a thread has taken packet work
over. Beyond 1.25 times chance says more and more often whether they starve at all."""
_MOST_LOADS = 16
_TRIES = 4
"""Trials of one load, where none of them is sound."""


def grid(pdr: float, factors: Sequence[float], max_load: float, highest: float = 0.0) -> tuple[float, ...]:
    """Loads around ``pdr`` (packets/s), rounded to 4 digits; what the generator cannot offer is left out.

    One grid serves two PDRs when ``highest`` is the other: factors below 1 are of the lower, those above of the higher.
    """
    low, high = min(pdr, highest or pdr), max(pdr, highest)
    loads = {_rounded((low if factor < 1 else high) * factor) for factor in factors}
    return tuple(sorted(load for load in loads if load <= max_load))


def ends(factors: Sequence[float]) -> tuple[float, ...]:
    """Factors of a grid below the PDR, and the highest. The loads between are chosen by other trials then."""
    return tuple(factor for factor in factors if factor < 1 or factor == max(factors))


def past_the_pdr(highest: float) -> tuple[float, ...]:
    """Loads between the PDR and the highest of the curve, which is about twice it, rounded to 4 digits; packets/s."""
    return tuple(load for factor in _PAST if (load := _rounded(highest / _CURVE * factor)) < highest)


def overloads(highest: float, factor: float, max_load: float = math.inf) -> tuple[float, ...]:
    """Loads far beyond saturation, rounded to 4 digits: doubling up to ``factor`` times what a SUT can take.

    Args:
        highest: of the curve, which is about twice what the SUT can take; packets/s.
        factor: 0 where nothing is asked for beyond the curve.
        max_load: what the generator can offer; loads above it are left out.
    """
    factors = []
    step = 2 * _CURVE
    while step < factor:
        factors.append(step)
        step *= 2
    loads = (_rounded(highest / _CURVE * one) for one in (*factors, factor))
    return tuple(load for load in loads if highest < load <= max_load)


def further_load(trials: Sequence[Trial], plr_threshold: float, max_load: float, needs: int = 2) -> float | None:
    """A load to add above the grid, None when the grid shows what it must.

    PASTRAMI's TIR needs two loads past the PDR. When fewer than ``needs`` show it (the SUT has become faster since the
    search, or the search met a bad moment), the grid is extended upwards as far as the generator goes. The highest load
    is asked for again first where none of its trials was sound.
    """
    curve = LoadLossCurve.from_trials(trials)
    past = [load for load, plr in zip(curve.loads, curve.steady_plrs, strict=True) if plr > plr_threshold]
    highest = max(trial.intended_load for trial in trials)
    if len(past) >= needs or len(curve.loads) >= _MOST_LOADS:
        return None
    if highest not in curve.loads and sum(trial.intended_load == highest for trial in trials) < _TRIES:
        return highest
    if is_highest(highest, max_load):
        return None
    return _rounded(min(highest * _FURTHER, max_load))


def is_highest(load: float, max_load: float) -> bool:
    """Whether nothing above ``load`` can be asked of the generator; loads are rounded."""
    return load >= max_load * 0.999


def round_order(loads: Collection[float], number: int) -> tuple[float, ...]:
    """The order in which round ``number`` goes through the loads: upwards and downwards in turn.

    Repeats of a load lie a round apart, so that what changes over time (another guest, heat) shows as drift over the
    repeats of every load and not as a difference between loads.
    """
    return tuple(sorted(loads, reverse=number % 2 == 1))


def _rounded(load: float) -> float:
    return float(f"{load:.4g}")
