"""The checks behind a verdict: each names its number, its bound, and what they mean in one sentence.

A check passes, fails, or cannot be decided (``passed`` is None): too few repeats for an answer, never a guess. A check
fails only beyond what the repeats' own scatter explains. ``Bounds.false_alarm`` is one budget: each statistical check
spends its share of it over all the loads or series it looks at (Bonferroni), so looking at more raises no more false
alarms.

tests/bench/check_power.py simulates, at the size of each profile, how often a sound SUT is called UNSTABLE, and how
often each check finds the fault that it is for. Its figures stand in docs/method-curve.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pdrgate.results.model import CheckResult, CurvePdr
from pdrgate.stability.curve import LoadLossCurve, LoadPoint, first_past
from pdrgate.stability.drift import WANDER_MIN_RUNS, Repeats, RepeatScatter
from pdrgate.stability.throughput_increase import Saturation, TirReading
from pdrgate.stats.intervals import sample_deviation, t_quantile
from pdrgate.stats.modes import MODES_MIN_RUNS
from pdrgate.values.units import Rate, Ratio

ENOUGH_DATA = "enough data"
SATURATION = "saturation"
LOW_LOAD_LOSS = "low load loss"
LIVELOCK = "livelock"
TREND = "trend"
AUTOCORRELATION = "autocorrelation"
TWO_MODES = "two modes"
SPREAD = "spread"

STATISTICAL = (SATURATION, LOW_LOAD_LOSS, TREND, AUTOCORRELATION, TWO_MODES, SPREAD)
"""The checks that chance can fail. A livelock halves the throughput: no noise does."""
_MODES = "see two modes"
_TREND = "distinguish a trend from chance"
_LOSSY = 2
"""Trials that lose too much at a low load, before it is the SUT that does."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of the checks. Ratios are fractions; effects are relative to the throughput or PDR they concern."""

    low_load_loss: float | None = None
    """Largest mean PLR at low loads; None means a fifth of the PLR threshold (0.1 % for PDR@0.5 %).

    Of PASTRAMI's published experiments (46 of them), the 14 that are GOOD in every reading lose at most 0.04 % there;
    those whose loss creeps up long before saturation lose 0.12 to 0.19 %.
    """
    low_load: float = 0.75
    """Loads up to this part of the PDR are low."""
    livelock: float = 0.5
    """Least part of its most that a SUT forwards at higher loads; in the published experiments it is 0.98 and more."""
    drift: float = 0.01
    """Trend over all repeats, or wandering among them, that is too small to matter however significant."""
    mode_gap: float = 0.02
    """Distance of two modes that is too small to matter: the gate's usual tolerance."""
    spread: float = 0.05
    """Largest run-to-run deviation of the PDR, and of the throughput past it; more, where few repeats of a SUT that
    deviates by ``sound_spread`` show more by chance.

    Published PDRs deviate by 0.2 to 3.2 % in 11 of the 14 GOOD experiments (the others by 5.4 to 6.3 %: unpinned,
    small buffers), and by more than 5 % in 20 of the 32 BAD ones.
    """
    sound_spread: float = 0.03
    """Deviation of a SUT, and its machine, that is no fault whatever its repeats show."""
    min_runs: int = 3
    """Fewest repeats at each load around the PDR."""
    min_loads: int = 3
    false_alarm: float = 0.01
    """Chance that any statistical check fails a sound SUT."""

    @property
    def each(self) -> float:
        """The share of one check."""
        return self.false_alarm / len(STATISTICAL)


def check_enough_data(
    curve: LoadLossCurve, plr_threshold: float, bounds: Bounds, measured: LoadLossCurve | None = None
) -> CheckResult:
    """Enough loads, enough repeats at the loads around the PDR, and the PDR above the lowest load.

    Args:
        measured: curve of all trials, if ``curve`` leaves lone dips out, or loads that another measurand covers: they
            count as repeats, and as loads.
    """
    name = ENOUGH_DATA
    if len((measured or curve).points) < bounds.min_loads:
        found = len((measured or curve).points)
        limited = f" ({len(curve.limited_loads)} more: generator-limited)" if curve.limited_loads else ""
        sentence = f"{found} load{'s' * (found != 1)} measured{limited}, needs >= {bounds.min_loads}"
        return CheckResult(name, False, float(found), float(bounds.min_loads), sentence)
    past = first_past(curve.steady_plrs, plr_threshold)
    around = curve.points if past is None else curve.points[max(0, past - 1) : past + 2]
    repeats = {point.load: point.runs for point in (measured or curve).points}
    least = min(around, key=lambda point: repeats[point.load])
    runs = repeats[least.load]
    if runs < bounds.min_runs:
        sentence = f"{_repeats(runs)} at {Rate(least.load)}, needs >= {bounds.min_runs} at each load around the PDR"
        return CheckResult(name, False, float(runs), float(bounds.min_runs), sentence)
    if past == 0:
        first = curve.points[0]
        sentence = (
            f"PLR {Ratio(first.plr)} already at the lowest load {Rate(first.load)}, needs <= {Ratio(plr_threshold)}: "
            "measure lower loads"
        )
        return CheckResult(name, False, first.plr, plr_threshold, sentence)
    sentence = f"{len(curve.points)} loads, at least {runs} repeats around the PDR"
    return CheckResult(name, True, float(runs), float(bounds.min_runs), sentence)


def check_saturation(
    curve: LoadLossCurve,
    saturation: Saturation,
    pdr: CurvePdr,
    *,
    reading: TirReading,
    plr_threshold: float,
    eta: float,
    bounds: Bounds,
) -> CheckResult:
    """Saturation by TIR in ``reading``: GOOD passes; BAD fails where a TIR is too high beyond its own uncertainty.

    A TIR is a difference of two mean throughputs over a load step. Its standard error comes from the deviations of
    the two, its quantile from Welch's degrees of freedom; where a load has one trial the TIR is taken as it is.
    """
    name = SATURATION
    past = first_past(curve.steady_plrs, plr_threshold)
    if past is None:
        return _never_saturated(curve, plr_threshold)
    shown = f"PDR {Rate(pdr.load)}" if pdr.load is not None else f"{Rate(curve.points[past].load)}"
    if saturation.potential_index is None:
        sentence = f"no load after {Rate(curve.points[past].load)}, the first past the PDR: no TIR; {_higher(curve)}"
        return CheckResult(name, False, None, eta, sentence)

    potential = saturation.potential_index
    limits = {
        index: reading.entry_bound(eta) if index == potential else eta for index in range(potential, len(curve.points))
    }
    steps = [(index, ratio, limits[index]) for index, ratio in _numbered(saturation.tir) if index in limits]
    finite = [step for step in steps if math.isfinite(step[2])]
    too_high = [step for step in finite if not step[1] < step[2]]
    if not too_high:
        if not finite:
            sentence = f"the published reading asks nothing of the only TIR after {shown}, {_two_digits(steps[0][1])}"
            return CheckResult(name, True, None, None, sentence)
        _, worst, limit = max(finite, key=lambda step: step[1] - step[2])
        return CheckResult(
            name, True, worst, limit, f"TIR {_two_digits(worst)} or less after {shown}, needs < {limit:.2f}"
        )

    level = bounds.each / len(finite)
    margins = {index: _tir_margin(curve.points[index - 1], curve.points[index], level) for index, _, _ in too_high}
    proved = [(index, ratio, limit) for index, ratio, limit in too_high if not ratio - margins[index] < limit]
    index, worst, limit = max(proved or too_high, key=lambda step: step[1])
    statement = f"TIR {_two_digits(worst)} after {shown}, needs < {limit:.2f} (load {Rate(curve.points[index].load)})"
    if proved:
        return CheckResult(name, False, worst, limit, statement)
    doubt = f"but its repeats scatter by ±{margins[index]:.2f}: repeat more often or space loads wider"
    return CheckResult(name, None, worst, limit, f"{statement}, {doubt}")


def _never_saturated(curve: LoadLossCurve, plr_threshold: float) -> CheckResult:
    top = curve.points[-1]
    sentence = (
        f"PLR {Ratio(top.plr)} at the highest load {Rate(top.load)}, needs > {Ratio(plr_threshold)}: "
        f"saturation was never seen; {_higher(curve)}"
    )
    return CheckResult(SATURATION, False, top.plr, plr_threshold, sentence)


def check_plateau(
    curve: LoadLossCurve, pdr: CurvePdr, *, plr_threshold: float, eta: float, bounds: Bounds
) -> CheckResult:
    """Saturation if no check looks at the loads between the PDR and the highest: one TIR from there to here.

    Like `check_saturation`, it distinguishes loss that begins before saturation from a PDR at the onset of saturation.
    """
    name = SATURATION
    top, past = curve.points[-1], first_past(curve.steady_plrs, plr_threshold)
    if past is None:
        return _never_saturated(curve, plr_threshold)
    if pdr.load is None or pdr.load >= top.load:
        return CheckResult(
            name, None, None, eta, f"no load past the PDR but {Rate(top.load)}: no TIR; {_higher(curve)}"
        )
    step = top.load - pdr.load
    ratio = (top.throughput - pdr.load * (1.0 - plr_threshold)) / step
    sentence = f"TIR {_two_digits(ratio)} from PDR {Rate(pdr.load)} to {Rate(top.load)}, needs < {eta:.2f}"
    if ratio < eta:
        return CheckResult(name, True, ratio, eta, sentence)
    scatter = sample_deviation(top.throughputs) / math.sqrt(top.runs) if top.runs > 1 else 0.0
    margin = t_quantile(1 - bounds.each, top.runs - 1) * scatter / step if scatter else 0.0
    if ratio - margin < eta:
        return CheckResult(
            name, None, ratio, eta, f"{sentence}, but its repeats scatter by ±{margin:.2f}: repeat more often"
        )
    return CheckResult(name, False, ratio, eta, sentence)


def check_low_load_loss(curve: LoadLossCurve, pdr: CurvePdr, plr_threshold: float, bounds: Bounds) -> CheckResult:
    """Loss long before the PDR, which the paper's method does not look at: the mean PLR at every low load.

    The limit is on the mean itself, not on its confidence limit: bursts at half the PDR are a fault even if the
    interval still reaches down to 0. But one trial of a load is no evidence against the SUT.
    """
    name = LOW_LOAD_LOSS
    bound = plr_threshold / 5 if bounds.low_load_loss is None else bounds.low_load_loss
    reference = pdr.load if pdr.load is not None else pdr.bracket[0]
    low = [point for point in curve.points if reference is not None and point.load <= bounds.low_load * reference]
    limit = f"<= {bounds.low_load:g} PDR"
    if not low:
        return CheckResult(name, None, None, bound, f"no load {limit} was measured: loss at low load is unknown")
    worst = max(low, key=lambda point: (point.plr if _often(point, bound) else 0.0, point.plr))
    value = Ratio(worst.plr)
    if worst.plr > bound:
        if not _often(worst, bound):
            sentence = f"PLR {value} at {Rate(worst.load)}, but by one trial of {worst.runs}, needs <= {Ratio(bound)}"
            return CheckResult(name, True, worst.plr, bound, sentence)
        sentence = f"PLR {value} at {Rate(worst.load)}, well below the PDR, needs <= {Ratio(bound)}"
        return CheckResult(name, False, worst.plr, bound, sentence)
    return CheckResult(name, True, worst.plr, bound, f"PLR {value} or less at loads {limit}, needs <= {Ratio(bound)}")


def check_livelock(curve: LoadLossCurve, bounds: Bounds, measured: LoadLossCurve | None = None) -> CheckResult:
    """The SUT does not forward next to nothing when it is offered more (PASTRAMI Eq. 4 and 5, taken to their end).

    Args:
        measured: of all loads, where the curve lacks some: its most may be there.
    """
    most = max((measured or curve).points, key=lambda point: median(point.throughputs))
    beyond = [point for point in curve.points if point.load >= most.load]
    least = min(beyond, key=lambda point: median(point.throughputs))
    best, worst = median(most.throughputs), median(least.throughputs)
    part = worst / best if best else 1.0
    sentence = f"{Rate(worst)} of {Rate(least.load)} handled, and {Rate(best)} of {Rate(most.load)}"
    if part < bounds.livelock:
        if least.runs < bounds.min_runs:
            return CheckResult(
                LIVELOCK, None, part, bounds.livelock, f"{_repeats(least.runs)} at {Rate(least.load)}: too few"
            )
        needs = f"needs >= {Ratio(bounds.livelock)} of its most"
        return CheckResult(LIVELOCK, False, part, bounds.livelock, f"it livelocks: {sentence}, {needs}")
    return CheckResult(LIVELOCK, True, part, bounds.livelock, sentence)


def check_trend(series: Sequence[Repeats], bounds: Bounds, fewest: int = WANDER_MIN_RUNS) -> CheckResult:
    """No series changes by more than the drift bound beyond chance.

    Series that are too short to show any trend at the level are not looked at; the others share it.
    """
    long = [one for one in series if len(one.values) >= fewest]
    known = [(one, one.trend) for one in long if one.trend is not None and one.trend.least_p <= bounds.each]
    if not known:
        return CheckResult(TREND, None, None, bounds.drift, _not_enough(series, _TREND, fewest))
    level = bounds.each / len(known)
    failed = [found for found in known if found[1].p_value <= level and abs(found[1].change) > bounds.drift]
    one, worst = max(failed or known, key=lambda found: abs(found[1].change))
    change = f"{one.quantity} changes by {worst.change * 100:+z.2g} % over {len(one.values)} {one.each}s"
    if failed:
        sentence = f"{change} (p = {worst.p_value:.1g}), needs <= {Ratio(bounds.drift)}"
        return CheckResult(TREND, False, worst.change, bounds.drift, sentence)
    if abs(worst.change) <= bounds.drift:
        return CheckResult(TREND, True, worst.change, bounds.drift, f"{change}, needs <= {Ratio(bounds.drift)}")
    return CheckResult(
        TREND, True, worst.change, bounds.drift, f"{change}, not beyond chance (p = {worst.p_value:.1g})"
    )


def check_autocorrelation(series: Sequence[Repeats], bounds: Bounds, fewest: int = WANDER_MIN_RUNS) -> CheckResult:
    """Neighbouring values are not alike while the level wanders by more than the drift bound."""
    name = AUTOCORRELATION
    long = [repeats for repeats in series if len(repeats.values) >= fewest]
    known = [(repeats, repeats.autocorrelation) for repeats in long if repeats.autocorrelation is not None]
    if not known:
        why = "all repeats are alike" if long else _not_enough(series, "see neighbours alike", fewest)
        return CheckResult(name, True if long else None, None, None, why)
    failed = [found for found in known if found[1].significant and found[0].wander > bounds.drift]
    repeats, worst = max(failed or known, key=lambda found: found[1].value - found[1].bound)
    what = f"lag-1 autocorrelation {worst.value:.2f} of the {repeats.quantity}"
    wander = f"level wanders by {Ratio(repeats.wander)}"
    if failed:
        sentence = f"{what}, needs <= {worst.bound:.2f}: its {wander}, needs <= {Ratio(bounds.drift)}"
        return CheckResult(name, False, worst.value, worst.bound, sentence)
    if worst.significant:
        return CheckResult(name, True, worst.value, worst.bound, f"{what}, but its {wander} only")
    return CheckResult(name, True, worst.value, worst.bound, f"{what}, needs <= {worst.bound:.2f}")


def check_two_modes(series: Sequence[Repeats], bounds: Bounds) -> CheckResult:
    """No series falls into two groups."""
    name = TWO_MODES
    known = [(repeats, repeats.modes) for repeats in series if repeats.modes is not None]
    if not known:
        if all(len(one.values) < MODES_MIN_RUNS + one.references for one in series):
            return CheckResult(name, None, None, None, _not_enough(series, _MODES, MODES_MIN_RUNS))
        return CheckResult(name, True, 0.0, None, "all repeats are alike")
    failed = [found for found in known if found[1].significant and found[1].gap > bounds.mode_gap]
    # The speeds of one load say more than those of several together.
    repeats, worst = max(failed or known, key=lambda found: (found[0].each == "repeat", found[1].excess))
    if failed:
        low, high = repeats.shown(worst.low), repeats.shown(worst.high)
        sentence = (
            f"{repeats.quantity} flips between {low} ({worst.low_count} times) and {high} "
            f"({worst.high_count}): {worst.separation:.1f} deviations apart, needs <= {worst.bound:.1f}"
        )
        return CheckResult(name, False, worst.separation, worst.bound, sentence)
    if worst.significant:
        sentence = f"{repeats.quantity} has two modes, but only {Ratio(worst.gap)} apart"
    else:
        sentence = (
            f"best split of the {repeats.quantity} is {worst.separation:.1f} deviations, needs <= {worst.bound:.1f}"
        )
    return CheckResult(name, True, worst.separation, worst.bound, sentence)


def check_spread(scatters: Sequence[RepeatScatter], bounds: Bounds) -> CheckResult:
    """Neither the repeats' own PDRs nor their throughputs past the PDR scatter more than the spread bound.

    Few repeats of a SUT whose deviation is sound may show more than the bound: then it is what they exceed with the
    check's probability (the chi-square interval of a deviation).
    """
    if not scatters:
        return CheckResult(SPREAD, None, None, bounds.spread, "no PDR per repeat: its deviation is unknown")
    level = bounds.each / len(scatters)
    bound, worst = max(
        ((_spread_bound(one.freedom, level, bounds), one) for one in scatters),
        key=lambda found: found[1].deviation / found[0],
    )
    sentence = (
        f"the {worst.quantity} deviates by {Ratio(worst.deviation)} from repeat to repeat, needs <= {Ratio(bound)}"
    )
    return CheckResult(SPREAD, worst.deviation <= bound, worst.deviation, bound, sentence)


def _spread_bound(freedom: int, level: float, bounds: Bounds) -> float:
    from scipy.special import chdtri  # as in stats, at its first use: it takes its time

    by_chance = bounds.sound_spread * math.sqrt(chdtri(freedom, level) / freedom)
    return max(bounds.spread, float(f"{by_chance:.2g}"))


def _often(point: LoadPoint, bound: float) -> bool:
    """Whether more than one of the trials of a load lost too much, where there are more."""
    return sum(loss > bound for loss in point.losses) >= min(_LOSSY, point.runs)


def _not_enough(series: Sequence[Repeats], what: str, fewest: int = 0) -> str:
    longest = max(series, key=lambda one: len(one.values), default=None)
    if longest is None:
        return f"no repeats past the PDR to {what}"
    needs = f", needs {fewest + (longest.references if what == _MODES else 0)}" if fewest else ""
    where = " past the PDR" if longest.each == "trial" else ""
    return f"not enough {longest.each}s{where} to {what}: {len(longest.values)}{needs}"


def _tir_margin(before: LoadPoint, after: LoadPoint, level: float) -> float:
    """One-sided half width of the TIR between two loads at ``level``; 0 if a load has no deviation."""
    if before.runs < 2 or after.runs < 2:
        return 0.0
    first = sample_deviation(before.throughputs) ** 2 / before.runs
    second = sample_deviation(after.throughputs) ** 2 / after.runs
    total = first + second
    if total == 0:
        return 0.0
    freedom = 1 / ((first / total) ** 2 / (before.runs - 1) + (second / total) ** 2 / (after.runs - 1))
    return t_quantile(1 - level, freedom) * math.sqrt(total) / (after.load - before.load)


def _numbered(tir: Sequence[float | None]) -> list[tuple[int, float]]:
    return [(index, ratio) for index, ratio in enumerate(tir) if ratio is not None]


def _two_digits(ratio: float) -> str:
    return f"{ratio:z.2f}"


def _higher(curve: LoadLossCurve) -> str:
    above = [load for load in curve.limited_loads if not curve.points or load > curve.points[-1].load]
    if above:
        return f"the generator was the limit at {Rate(above[0])} and above"
    return "measure higher loads"


def _repeats(runs: int) -> str:
    return f"{runs} repeat{'s' * (runs != 1)}"
