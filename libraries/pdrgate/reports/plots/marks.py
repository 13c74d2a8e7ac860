"""What the pictures over the offered load mark: the PDR, saturation, the repeats, the generator's limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes

from pdrgate.reports.plots.page import BROWN, FAINT, INK
from pdrgate.reports.plots.scales import interval
from pdrgate.results.model import AssessmentResult, LoadResult
from pdrgate.values.units import Rate, Ratio

_PDR = "#b27b00"
_SATURATED, _NOT_SATURATED = "#d3e8dd", "#fbdccb"


def mark_pdr(axes: Axes, found: AssessmentResult) -> None:
    """The load at which the PLR crosses the threshold, as a line, and its interval as a band."""
    pdr, (left, right) = found.pdr, axes.get_xlim()
    if pdr.load is None:
        return
    axes.axvline(pdr.load, color=_PDR, linewidth=1.6, zorder=2)
    if pdr.lower is not None or pdr.upper is not None:
        label = f"95 % interval of the crossing: {interval(pdr.lower, pdr.upper)}"
        ends = pdr.lower or left, pdr.upper or right
        axes.axvspan(*ends, color=_PDR, alpha=0.22, linewidth=0, zorder=0.3, label=label)


def say_pdr(axes: Axes, found: AssessmentResult) -> None:
    """Write above the axes where the PLR crosses the threshold.

    It is not called the PDR: that is, where a gate compares it, the one by the throughput in saturation.
    """
    threshold, (low, high) = Ratio(found.pdr.plr_threshold), found.pdr.bracket
    if found.pdr.load is not None:
        text = f"PLR crosses {threshold} at {Rate(found.pdr.load)}"
    elif low is not None:
        text = f"PLR does not cross {threshold} up to {Rate(low)}"
    elif high is not None:
        text = f"PLR is past {threshold} already at {Rate(high)}"
    else:
        text = "every trial was generator-limited: there is no curve"
    left, right = axes.get_xlim()
    at = found.pdr.load or low or high or left
    side = "left" if at < (left + right) / 2 else "right"
    above = axes.get_xaxis_transform()
    axes.text(at, 1.01, text, color=BROWN, weight="bold", ha=side, va="bottom", transform=above)


def mark_saturation(axes: Axes, found: AssessmentResult) -> None:
    """Shade from the potential saturation point on, in another colour from where the saturation that lasts begins."""
    loads = [point.load for point in found.loads]
    potential, actual = found.saturation.potential_index, found.saturation.actual_index
    if potential is None:
        return
    end = axes.get_xlim()[1]
    begin = end if actual is None else loads[actual]
    axes.axvline(loads[potential], color=INK, linewidth=1.0, linestyle=":", zorder=1)
    if begin > loads[potential]:
        label = f"no lasting saturation from {Rate(loads[potential])}"
        axes.axvspan(loads[potential], begin, color=_NOT_SATURATED, alpha=0.55, linewidth=0, zorder=0, label=label)
    if actual is not None:
        label = f"saturated from {Rate(begin)}"
        axes.axvspan(begin, end, color=_SATURATED, alpha=0.65, linewidth=0, zorder=0, label=label)


def mark_limited(axes: Axes, found: AssessmentResult) -> None:
    """Loads that are no points because the generator limited every trial, as crosses on the axis."""
    if loads := found.generator_limited_loads:
        low, at_bottom = [0.025] * len(loads), axes.get_xaxis_transform()
        label = "every trial was generator-limited"
        axes.plot(loads, low, "x", transform=at_bottom, markersize=7, color=FAINT, zorder=6, label=label)


def mark_repeats(
    axes: Axes, points: Sequence[LoadResult], values: Callable[[LoadResult], Sequence[float]], colour: str
) -> None:
    """Every repeat as a faint dot, where there are repeats."""
    drawn = [(point.load, value) for point in points if point.runs > 1 for value in values(point)]
    if drawn:
        loads, heights = zip(*drawn, strict=True)
        axes.plot(loads, heights, ".", color=colour, markeredgewidth=0, alpha=0.4, zorder=2.5, label="each repeat")
