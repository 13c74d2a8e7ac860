"""Two builds compared: what was measured of each boot, pair by pair, and what the pairs so far said of the change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from pdrgate.measurands import (
    AT_THE_KNEE,
    PartialDropRate,
    Rule,
    SaturationThroughput,
    agree_at_the_knee,
    described,
    unit_of,
)
from pdrgate.reports.plots.page import BLUE, FAINT, INK, ORANGE, RED, Stamp, label, legend, page, styled
from pdrgate.results.model import Better, BootResult, ScenarioResult
from pdrgate.stats.intervals import paired_change_interval
from pdrgate.values.units import change_in_words

_MOST_MEASURANDS = 4
_LABEL = 90
"""Characters of a build in the legend."""


@dataclass(frozen=True, slots=True)
class _Column:
    """A measurand of all pairs whose boots both have it, in the order of the pairs."""

    name: str
    unit: str
    better: Better
    tolerance: float | None
    numbers: tuple[int, ...]
    baseline: tuple[float, ...]
    candidate: tuple[float, ...]


@styled
def pairs(scenario: ScenarioResult) -> Figure | None:
    """The boots of two builds, a column per measurand; None where no pair has values of both builds."""
    columns = _columns(scenario)
    if not columns:
        return None
    labels = {side.side: label(f"{side.side}: {side.build}", _LABEL) for side in scenario.builds.sides}
    figure = page(scenario.label, "pairs of boots, one of each build", judged=Stamp(scenario.verdict))
    comparison = scenario.comparison
    told = {one.measurand: one for one in (comparison.changes if comparison else ())}
    knee = agree_at_the_knee(told.values())
    grid = figure.subplots(2, len(columns), sharex="col", squeeze=False)
    for column, (above, below) in zip(columns, grid.T, strict=True):
        baseline, candidate = labels.get("baseline", "baseline"), labels.get("candidate", "candidate")
        above.plot(column.numbers, column.baseline, "s-", color=ORANGE, markersize=5, linewidth=0.8, label=baseline)
        above.plot(column.numbers, column.candidate, "o-", color=BLUE, markersize=5, linewidth=0.8, label=candidate)
        spelled = unit_of(column.unit)
        unit = "" if spelled.prefixed else f" ({spelled.on_axis})"
        change = told.get(column.name)
        final = f"\n{change_in_words(change.change, change.lower, change.upper)}" if change else ""
        name = AT_THE_KNEE if knee and column.name == PartialDropRate.name else column.name
        above.set_title(f"{name}{unit}{final}", loc="left", fontsize=10.5, fontweight="bold")
        above.set_ylabel("each boot")
        if spelled.prefixed:
            above.yaxis.set_major_formatter(EngFormatter(spelled.on_axis))
        _changes(below, column, change.confidence if change else 0.95)
        below.set_xlabel("pair of boots")
        below.set_ylabel("change (%)")
        below.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend(figure)
    return figure


def _columns(scenario: ScenarioResult) -> list[_Column]:
    known = {one.name: one for side in scenario.builds.sides for one in side.findings.measurands}
    known |= {one.name: one for one in scenario.findings.measurands}
    comparison = scenario.comparison
    tolerances = {change.measurand: change.tolerance for change in (comparison.changes if comparison else ())}
    names = dict.fromkeys([*known, *(name for boot in scenario.builds.boots for name in boot.values)])
    if comparison is not None and agree_at_the_knee(comparison.changes):
        names.pop(SaturationThroughput.name, None)
    columns = []
    for name in names:
        found = _in_pairs(scenario.builds.boots, name)
        if found and described(name).rule is Rule.PAIRS:  # there is no room for what is compared with nothing
            numbers, baseline, candidate = zip(*found, strict=True)
            one = known.get(name)
            unit, better = (one.unit, one.better) if one else (described(name).unit, described(name).better)
            first = comparison if name == PartialDropRate.name else None
            tolerance = tolerances.get(name, first.tolerance if first else None)
            columns.append(_Column(name, unit, better, tolerance, numbers, baseline, candidate))
    return columns[:_MOST_MEASURANDS]


def _in_pairs(boots: Sequence[BootResult], name: str) -> list[tuple[int, float, float]]:
    """Number, baseline's and candidate's value of each pair that has both.

    A change from 0 has no ratio, so 0 is none.
    """
    values = {(boot.pair, boot.side): boot.values[name] for boot in boots if boot.values.get(name, 0.0) > 0}
    numbers = sorted({pair for pair, _ in values})
    return [
        (number, values[number, "baseline"], values[number, "candidate"])
        for number in numbers
        if (number, "baseline") in values and (number, "candidate") in values
    ]


def _changes(axes: Axes, column: _Column, confidence: float) -> None:
    """Each pair's change, and the mean with its interval as it was known after each pair.

    Args:
        confidence: of the interval: that of the change that the title shows.
    """
    changes = [100 * (value / base - 1) for value, base in zip(column.candidate, column.baseline, strict=True)]
    axes.axhline(0, color=FAINT, linewidth=0.7)
    tolerance = column.tolerance or 0.0
    bound = 100 * tolerance if column.better == "lower" else -100 * tolerance
    if column.tolerance is not None:
        worse = "more" if column.better == "lower" else "less"
        axes.axhline(bound, color=RED, linewidth=1.2, linestyle="--", label=f"tolerance, {tolerance:.1%} {worse}")
    axes.plot(column.numbers, changes, ".", color=BLUE, alpha=0.5, label="change of each pair")
    known = range(2, len(changes) + 1)
    found = [paired_change_interval(column.candidate[:count], column.baseline[:count], confidence) for count in known]
    if found:
        lows = [100 * one.interval.low for one in found]
        highs = [100 * one.interval.high for one in found]
        axes.plot(
            column.numbers[1:], [100 * one.estimate for one in found], color=INK, linewidth=1.4, label="change so far"
        )
        axes.fill_between(
            column.numbers[1:],
            lows,
            highs,
            color=INK,
            alpha=0.12,
            linewidth=0,
            label="its interval, 95 % for all together",
        )
        # The first intervals, of two or three pairs, would make all else flat.
        room = 1.3 * max(10 * tolerance, *(abs(change) for change in changes), *(map(abs, (*lows[2:], *highs[2:]))), 1)
        bottom, top = min(*lows, *changes, bound, 0.0), max(*highs, *changes, bound, 0.0)
        axes.set_ylim(max(-room, bottom) - 0.5, min(room, top) + 0.5)
