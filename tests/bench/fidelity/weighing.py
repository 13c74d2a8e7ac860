"""Weights for estimated cycles from some programs, and what they are worth on others."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from programs import Program
from scipy.optimize import nnls
from scipy.stats import spearmanr

from pdrgate.measurands.counted.estimated_cycles import PricedEvents, WeightsWorth


@dataclass(frozen=True)
class Measured:
    """A program, the cycles that a run takes, and what the model counts of it."""

    program: Program
    cycles: float
    events: PricedEvents


def split(measured: Sequence[Measured]) -> tuple[Sequence[Measured], Sequence[Measured]]:
    """Those that make the weights, and those that tell what they are worth: every other one."""
    return measured[::2], measured[1::2]


def weights_of(measured: Sequence[Measured]) -> PricedEvents:
    """Prices, none below 0, by which the relative errors of estimates have the least squares."""
    cycles = np.array([one.cycles for one in measured])
    events = np.array([one.events for one in measured])
    return PricedEvents(*map(float, nnls(events / cycles[:, None], np.ones(len(cycles)))[0]))


def estimate(one: Measured, weights: PricedEvents) -> float:
    """Its cycles by the weights."""
    return one.events.of(weights).total


def changes(measured: Sequence[Measured]) -> list[tuple[Measured, Measured]]:
    """Programs of a family, each with the next."""
    families: dict[str, list[Measured]] = {}
    for one in measured:
        families.setdefault(one.program.family, []).append(one)
    return [pair for family in families.values() for pair in itertools.pairwise(family)]


def error_of_change(before: Measured, after: Measured, weights: PricedEvents) -> float:
    """How much the ratio of the two estimates is off that of the two measurements, relative."""
    return _off(before, after, estimate(before, weights), estimate(after, weights))


def _off(before: Measured, after: Measured, told: float, told_after: float) -> float:
    return told_after / told / (after.cycles / before.cycles) - 1.0


def worth_of(measured: Sequence[Measured], weights: PricedEvents) -> WeightsWorth:
    """What weights are worth on programs that did not make them."""
    return worth_of_estimates(measured, {one.program.title: estimate(one, weights) for one in measured})


def worth_of_estimates(measured: Sequence[Measured], estimates: Mapping[str, float]) -> WeightsWorth:
    """What estimates of cycles are worth, by the titles of programs."""
    told = [estimates[one.program.title] for one in measured]
    real = [one.cycles for one in measured]
    off = [
        abs(_off(before, after, estimates[before.program.title], estimates[after.program.title]))
        for before, after in changes(measured)
    ]
    return WeightsWorth(
        programs=len(measured), rank_correlation=float(spearmanr(told, real).statistic),
        error=statistics.median(abs(one / other - 1.0) for one, other in zip(told, real, strict=True)),
        error_of_change=statistics.median(off),
    )  # fmt: skip
