"""The repeats at each load, one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pdrgate.reports.plots.page import BLUE, FAINT, Stamp, page, styled
from pdrgate.results.model import AssessmentResult
from pdrgate.values.units import Rate, Ratio

_MOST_LOADS = 19
_LEAST_CHANGE = 0.5
"""A panel shows at least this much up and down, per cent, lest noise look like drama."""


@styled
def repeats(found: AssessmentResult, title: str, judged: Stamp | None = None) -> Figure:
    """Every repeat in measured order, a panel per load, so that drift and two modes are seen."""
    panels = _panels(found)
    left_out = max(0, len(found.loads) - _MOST_LOADS)
    subtitle = "rate handled in each repeat" + f"; {left_out} loads left out" * (left_out > 0)
    figure = page(title, subtitle, found, judged)
    columns = math.ceil(math.sqrt(len(panels))) or 1
    for number, (name, values) in enumerate(panels, 1):
        axes = figure.add_subplot(math.ceil(len(panels) / columns), columns, number)
        axes.set_title(name, loc="left", fontsize=9, fontweight="bold")
        _panel(axes, values)
    figure.supxlabel("repeat, in measured order", fontsize=10.5)
    figure.supylabel("change from the median at that load (%)", fontsize=10.5)
    return figure


def _panels(found: AssessmentResult) -> list[tuple[str, Sequence[float]]]:
    """What to draw, by name: where each repeat's PLR crosses, and the loads; of very many those nearest to the PDR."""
    points = found.loads
    centre = found.pdr.load or found.pdr.bracket[0] or 0.0
    nearest = sorted(points, key=lambda point: abs(point.load - centre))[:_MOST_LOADS]
    name = f"PLR crosses {Ratio(found.pdr.plr_threshold)}"
    crossings = [(name, series.values) for series in found.drift.series if series.load is None and series.values]
    loads = [(str(Rate(point.load)), point.throughputs) for point in points if point in nearest and point.throughputs]
    return [*crossings, *loads]


def _panel(axes: Axes, values: Sequence[float]) -> None:
    middle = median(values)
    changes = [100 * (value / middle - 1) if middle else 0.0 for value in values]
    axes.axhline(0, color=FAINT, linewidth=0.7, zorder=1)
    axes.plot(range(1, len(changes) + 1), changes, "o-", markersize=2.8, linewidth=0.4, color=BLUE)
    low, high = min([*changes, -_LEAST_CHANGE]), max([*changes, _LEAST_CHANGE])
    axes.set_ylim(low - 0.08 * (high - low), high + 0.08 * (high - low))
    axes.set_xticks([1, len(changes)])
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.grid(axis="x", visible=False)
    axes.tick_params(labelsize=8)
