"""The repeats as series in time: the quantities a drifting SUT would move, and what they did.

Not every load matters. Far below the PDR the throughput is the load, whatever the SUT does. So a series is the PDR of
each repeat, and the throughput at the first load past the PDR and at the potential saturation point, where it is the
SUT's capacity.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pdrgate.results.model import SeriesResult
from pdrgate.stability.curve import LoadLossCurve, first_past
from pdrgate.stats.drift import Autocorrelation, Trend, common_trend, lag1_autocorrelation, trend, wander
from pdrgate.stats.intervals import mean, sample_deviation
from pdrgate.stats.modes import Modes, two_modes
from pdrgate.units import Rate

MOST_SERIES = 3
MOST_TRENDS = MOST_SERIES + 1
"""Each series' own and the common one."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """One series of repeats in measured order, packets/s, and its behaviour over time."""

    quantity: str
    """What the values are, for people: ``PDR`` or ``throughput at 1.2 Mpps``."""
    load: float | None
    """The load it was measured at; None for the PDR."""
    values: tuple[float, ...]
    trend: Trend | None
    autocorrelation: Autocorrelation | None
    modes: Modes | None
    wander: float
    """Largest minus smallest mean of four consecutive parts, relative to the mean."""

    @classmethod
    def of(cls, quantity: str, load: float | None, values: tuple[float, ...], false_alarm: float) -> Repeats:
        """Compute everything; ``false_alarm`` is the level of the autocorrelation's bound."""
        return cls(
            quantity=quantity,
            load=load,
            values=values,
            trend=trend(values),
            autocorrelation=lag1_autocorrelation(values, false_alarm),
            modes=two_modes(values),
            wander=wander(values),
        )

    @property
    def deviation(self) -> float | None:
        """Sample deviation relative to the mean; None below two values or for a mean of 0."""
        centre = mean(self.values) if self.values else 0.0
        return sample_deviation(self.values) / centre if len(self.values) > 1 and centre else None

    @property
    def halves(self) -> float | None:
        """Mean of the later half over that of the earlier, minus 1; None below four values or for an earlier 0."""
        middle = len(self.values) // 2
        if middle < 2 or not (early := mean(self.values[:middle])):
            return None
        return mean(self.values[len(self.values) - middle :]) / early - 1

    def result(self) -> SeriesResult:
        """The series as a stored result."""
        return SeriesResult(
            quantity="pdr" if self.load is None else "throughput",
            load=self.load,
            runs=len(self.values),
            deviation=self.deviation,
            trend=self.trend.change if self.trend else None,
            trend_p=self.trend.p_value if self.trend else None,
            halves=self.halves,
            lag1=self.autocorrelation.value if self.autocorrelation else None,
            lag1_bound=self.autocorrelation.bound if self.autocorrelation else None,
            wander=self.wander,
            values=self.values,
        )


def repeats_that_matter(curve: LoadLossCurve, plr_threshold: float, false_alarm: float) -> tuple[Repeats, ...]:
    """The PDR's series first, then the throughput's at the first load past it and at the load after that."""
    return tuple(_series(curve, plr_threshold, false_alarm))


def trend_past_the_pdr(curve: LoadLossCurve, plr_threshold: float) -> Trend | None:
    """The trend that the throughputs at all loads past the PDR share; None when there are none, or no repeats."""
    past = first_past(curve.steady_plrs, plr_threshold)
    return None if past is None else common_trend([point.throughputs for point in curve.points[past:]])


def _series(curve: LoadLossCurve, plr_threshold: float, false_alarm: float) -> Iterator[Repeats]:
    past = first_past(curve.steady_plrs, plr_threshold)
    if past is None:
        return
    yield Repeats.of("PDR", None, curve.pdr_per_run(plr_threshold), false_alarm)
    for point in curve.points[past : past + 2]:
        yield Repeats.of(f"throughput at {Rate(point.load)}", point.load, point.throughputs, false_alarm)
