"""PASTRAMI's load-loss curve (Fig. 6)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pdrgate.reports.plots.marks import mark_limited, mark_pdr, mark_repeats, mark_saturation, say_pdr
from pdrgate.reports.plots.page import BLUE, BROWN, INK, PURPLE, RED, Stamp, legend, page, styled
from pdrgate.reports.plots.scales import PLR_FLOOR, floored, load_axis, loss_axis
from pdrgate.results.model import AssessmentResult, LoadResult
from pdrgate.values.units import Rate, Ratio

STARVED = "PLR while receivers starve: the least delivered in half of a trial"


@styled
def load_loss(found: AssessmentResult, title: str, subtitle: str = "", judged: Stamp | None = None) -> Figure:
    """The load-loss curve with its ΔUCL95, the PDR and where saturation was looked for.

    Between loads the curve is linear in PLR, as the PDR is interpolated, so it crosses the threshold at the PDR.
    """
    figure = page(title, subtitle, found, judged)
    axes = figure.add_subplot()
    load_axis(axes, found)
    loss_axis(axes, found.pdr.plr_threshold)
    mark_saturation(axes, found)
    mark_pdr(axes, found)
    say_pdr(axes, found)
    mark_limited(axes, found)
    threshold = max(PLR_FLOOR, found.pdr.plr_threshold)
    axes.axhline(threshold, color=INK, linestyle="--", linewidth=1, label=f"PLR {Ratio(found.pdr.plr_threshold)}")
    points = found.loads
    if points:
        _curve(axes, points, found)
        mark_repeats(axes, points, lambda point: floored(point.losses), PURPLE if _hides(points) else BLUE)
    _starvation(axes, points)
    if any(point.delta_ucl is not None for point in points):
        _uncertainty(axes.twinx(), points)
    legend(figure)
    return figure


def _curve(axes: Axes, points: Sequence[LoadResult], found: AssessmentResult) -> None:
    """The loss that loads are judged by; where a queue hid some of it in a short trial, what was lost beside it."""
    loads, plrs = [point.load for point in points], [point.plr for point in points]
    steady = [_steady(point) for point in points]
    # Straight between the loads and the crossing, which is where the PDR is read off; bent on a log scale.
    knots = dict(zip(loads, steady, strict=True))
    if found.pdr.load and knots.get(found.pdr.bracket[1] or 0.0, 0.0) > found.pdr.plr_threshold:
        knots[found.pdr.load] = found.pdr.plr_threshold
    between = np.union1d(sorted(knots), np.linspace(loads[0], loads[-1], 2000))
    line = np.interp(between, sorted(knots), [knots[load] for load in sorted(knots)])
    axes.plot(between, floored(line), color=BLUE, linewidth=1.2, zorder=3)
    drawn = floored(plrs)
    errors = np.transpose([_reach(point, mean) for point, mean in zip(points, drawn, strict=True)])
    one_each = all(point.runs == 1 for point in points)
    label = "PLR (one run per load: no interval)" if one_each else "mean PLR, 95 % interval"
    if not _hides(points):
        axes.errorbar(loads, drawn, errors, fmt="o", markersize=6.5, capsize=4.5, color=BLUE, zorder=4, label=label)
        return
    axes.plot(
        loads, floored(steady), "o", color=BLUE, markersize=6.5, zorder=4, label="PLR, with what the queue grew by"
    )
    axes.errorbar(
        loads, drawn, errors, fmt="v:", linewidth=1, markersize=5, capsize=4.5, color=PURPLE, alpha=0.5, zorder=2.9,
        label=f"{label}, of what the trials lost",
    )  # fmt: skip


def _steady(point: LoadResult) -> float:
    return point.plr if point.steady_plr is None else point.steady_plr


def _hides(points: Sequence[LoadResult]) -> bool:
    """Whether a queue hid losses of some trials, which were too short to fill it."""
    return any(not math.isclose(_steady(point), point.plr, abs_tol=PLR_FLOOR) for point in points)


def _starvation(axes: Axes, points: Sequence[LoadResult]) -> None:
    """What is lost where receivers get the least, and a word on where that is."""
    least = {point.load: point.least for point in points if point.least is not None}
    if not least:
        return
    losses = [1.0 - rate / load for load, rate in least.items()]
    axes.plot(list(least), floored(losses), "^:", color=BROWN, linewidth=1, markersize=5, zorder=3.6, label=STARVED)
    at = min(least, key=lambda load: least[load])
    told = f"{Rate(least[at])} of {Rate(at)} delivered"
    axes.annotate(
        told, (at, floored([1.0 - least[at] / at])[0]), xytext=(6, -26), textcoords="offset points", ha="left",
        color=BROWN, zorder=5,
    )  # fmt: skip


def _reach(point: LoadResult, mean: float) -> tuple[float, float]:
    """How far the interval reaches below and above the drawn mean."""
    if point.lcl is None or point.ucl is None:
        return math.nan, math.nan
    low, high = floored((point.lcl, point.ucl))
    return mean - low, high - mean


def _uncertainty(axes: Axes, points: Sequence[LoadResult]) -> None:
    """ΔUCL95 on its own scale, with a gap where there is none."""
    values = [math.nan if point.delta_ucl is None else point.delta_ucl for point in points]
    axes.plot([point.load for point in points], values, "s--", color=RED, linewidth=1.2, markersize=4.5, label="ΔUCL95")
    high = max(0.1, 1.12 * np.nanmax(values))
    axes.set_ylim(-0.03 * high, high)
    axes.grid(False)
    axes.spines["right"].set_visible(True)
    axes.set_ylabel("ΔUCL95 = (UCL95 − PLR) / PLR", color=RED)
    axes.tick_params(axis="y", labelcolor=RED)
