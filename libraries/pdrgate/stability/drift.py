"""The repeats as series in time: the quantities a drifting SUT would move, and what they did.

Not every load matters. Far below the PDR the throughput is the load, whatever the SUT does. So a series is the PDR of
each repeat, and the throughput at the first load past the PDR and at the potential saturation point, where it is the
SUT's capacity. Few repeats say little each; so there is one more series, of all trials past the PDR.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from pdrgate.record.trial import Trial
from pdrgate.results.model import SeriesResult
from pdrgate.stability.curve import LoadLossCurve, first_past
from pdrgate.stats.intervals import mean, sample_deviation
from pdrgate.stats.modes import Modes, two_modes
from pdrgate.stats.ranks import Autocorrelation, Trend, lag1_autocorrelation, monotone_trend, wander
from pdrgate.values.units import Rate

MOST_SERIES = 3
"""Series of single loads that are judged at most, beside the series of all trials past the PDR."""
PACKETS_PER_SECOND = "packets/s"
WANDER_MIN_RUNS = 15
"""Values that distinguish a trend or wandering of one run from chance.

With fewer, the bound on neighbours comes near what neighbours can be alike, and three repeats of three loads, each
relative to its median, are often in order.
"""


@dataclass(frozen=True, slots=True)
class RepeatScatter:
    """Deviation of a quantity from repeat to repeat."""

    quantity: str
    deviation: float
    """Relative to its mean."""
    freedom: int
    """Degrees of it: values less the means that were taken of them."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """A series of repeats in measured order, and its behaviour over time."""

    quantity: str
    """Name of the values for people: ``PDR`` or ``throughput at 1.2 Mpps``."""
    load: float | None
    """The load it was measured at; None for the PDR."""
    values: tuple[float, ...]
    trend: Trend | None
    autocorrelation: Autocorrelation | None
    modes: Modes | None
    wander: float
    """Largest minus smallest mean of four consecutive parts, relative to the mean."""
    each: str = "repeat"
    """Name of the event that gave one value."""
    references: int = 0
    """Number of values that others were compared with to find modes."""
    unit: str = PACKETS_PER_SECOND
    """Unit of the values."""

    @classmethod
    def of(
        cls,
        quantity: str,
        load: float | None,
        values: tuple[float, ...],
        false_alarm: float,
        unit: str = PACKETS_PER_SECOND,
    ) -> Repeats:
        """Compute everything; ``false_alarm`` is the level of the autocorrelation's bound."""
        return cls(
            quantity=quantity,
            load=load,
            values=values,
            trend=monotone_trend(values),
            autocorrelation=lag1_autocorrelation(values, false_alarm),
            modes=two_modes(values),
            wander=wander(values),
            unit=unit,
        )

    def shown(self, value: float) -> str:
        """A value as people read it."""
        return str(Rate(value)) if self.unit == PACKETS_PER_SECOND else f"{value:.4g} {self.unit}"

    @property
    def deviation(self) -> float | None:
        """Sample deviation relative to the mean; None below two values or for a mean of 0."""
        centre = mean(self.values) if self.values else 0.0
        return sample_deviation(self.values) / centre if len(self.values) > 1 and centre else None

    @property
    def scatter(self) -> RepeatScatter | None:
        """Their deviation with what it rests on; None below two values or for a mean of 0."""
        return None if self.deviation is None else RepeatScatter(self.quantity, self.deviation, len(self.values) - 1)

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


def series_looked_at(curve: LoadLossCurve) -> int:
    """Number of series that are long enough to look at neighbours: they share a level."""
    runs = max((point.runs for point in curve.points), default=0)
    return 1 + (MOST_SERIES if runs >= WANDER_MIN_RUNS else 0)


def trials_past_the_pdr(
    trials: Sequence[Trial], judged: LoadLossCurve, curve: LoadLossCurve, plr_threshold: float, false_alarm: float
) -> Repeats | None:
    """All trials past the PDR as one series of throughputs, in measured order; None if there are none.

    Each is taken relative to the median of its load, and in packets/s by the mean of these.

    Args:
        trials: those of ``judged``.
        curve: of all trials, lone dips included: they may be a mode.
    """
    past = first_past(judged.steady_plrs, plr_threshold)
    if past is None:
        return None
    middles = {point.load: median(point.throughputs) for point in judged.points[past:]}
    if not all(middles.values()):
        return None
    scale = mean(list(middles.values()))
    values = tuple(
        scale * trial.intended_load * trial.throughput_ratio / middles[trial.intended_load]
        for trial in trials
        if trial.sound and trial.intended_load in middles
    )
    saturated = [point.throughputs for point in curve.points if point.load in middles]
    return Repeats(
        quantity="throughput past the PDR",
        load=None,
        values=values,
        trend=monotone_trend(values),
        autocorrelation=lag1_autocorrelation(values, false_alarm),
        # Many repeats of a load show modes by themselves, and have outliers that set the loads apart.
        modes=_modes_together(saturated, scale) if len(saturated[0]) < WANDER_MIN_RUNS else None,
        wander=wander(values),
        each="trial",
        references=len(saturated),
    )


def _modes_together(rates: Sequence[Sequence[float]], scale: float) -> Modes | None:
    """The modes of the rates at several loads, each relative to the best of its load, which itself is left out.

    The median is no reference: if half of the trials at a load are slow, it is neither level. The first load may lie
    between two levels, and cut the higher one off, so the others are looked at without it, too.
    """
    found = [
        two_modes([scale * value / max(own) for own in some for value in sorted(own)[:-1]])
        for some in (rates, rates[1:])
    ]
    return max((one for one in found if one is not None), key=lambda one: one.excess, default=None)


def scatters(curve: LoadLossCurve, plr_threshold: float) -> tuple[RepeatScatter, ...]:
    """Deviation of the PDR, of the throughput at each of the two loads past it, and of the throughput past it as a
    whole.

    The last is the pooled deviation of the loads past the PDR, each about its own mean: few repeats say more together.
    """
    found = [one.scatter for one in _series(curve, plr_threshold, 0.5)]
    past = first_past(curve.steady_plrs, plr_threshold)
    rates = [] if past is None else [point.throughputs for point in curve.points[past:] if point.throughput]
    freedom = sum(len(own) - 1 for own in rates)
    if freedom:
        squares = sum((len(own) - 1) * (sample_deviation(own) / mean(own)) ** 2 for own in rates if len(own) > 1)
        found.append(RepeatScatter("throughput past the PDR", math.sqrt(squares / freedom), freedom))
    return tuple(one for one in found if one is not None)


def _series(curve: LoadLossCurve, plr_threshold: float, false_alarm: float) -> Iterator[Repeats]:
    past = first_past(curve.steady_plrs, plr_threshold)
    if past is None:
        return
    yield Repeats.of("PDR", None, curve.pdr_per_run(plr_threshold), false_alarm)
    for point in curve.points[past : past + 2]:
        yield Repeats.of(f"throughput at {Rate(point.load)}", point.load, point.throughputs, false_alarm)
