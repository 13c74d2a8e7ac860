"""The axes of the pictures: loads in packets/s, and the loss ratio with its floor."""

from __future__ import annotations

import math
from collections.abc import Iterable

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import EngFormatter, FixedFormatter, FixedLocator, FuncFormatter

from pdrgate.reports.plots.page import BLUE
from pdrgate.results.model import AssessmentResult
from pdrgate.values.units import Rate, Ratio

PLR_FLOOR = 1e-6
"""Bottom of the loss scale (section IV-B): no measurement of reasonable length distinguishes a smaller PLR from 0."""


def rate_axis(axis: Axis) -> None:
    """Write the numbers of ``axis``, packets/s, as 500 kpps."""
    axis.set_major_formatter(EngFormatter("pps"))


def load_axis(axes: Axes, found: AssessmentResult) -> None:
    """The offered load, wide enough for all loads, those included where the generator was the limit."""
    loads = [*(point.load for point in found.loads), *found.generator_limited_loads]
    low, high = min(loads), max(loads)
    room = 0.04 * (high - low) or 0.1 * high
    axes.set_xlim(low - room, high + room)
    axes.set_xlabel("offered load")
    rate_axis(axes.xaxis)


def loss_axis(axes: Axes, threshold: float) -> None:
    """Decades from the floor to 1, and the threshold in per cent."""
    axes.set_yscale("log")
    axes.set_ylim(0.65 * PLR_FLOOR, 1.3)
    axes.yaxis.set_major_formatter(FuncFormatter(_decade))
    axes.yaxis.set_minor_locator(FixedLocator(floored([threshold])))
    axes.yaxis.set_minor_formatter(FixedFormatter([str(Ratio(threshold))]))
    axes.set_ylabel("packet loss ratio (PLR)", color=BLUE)
    axes.tick_params(axis="y", which="both", labelcolor=BLUE)


def interval(lower: float | None, upper: float | None) -> str:
    """Two rates, or the one that there is, in words."""
    if lower is None or upper is None:
        return f"from {Rate(lower)}" if lower is not None else f"up to {Rate(upper or 0.0)}"
    return f"{Rate(lower)} to {Rate(upper)}"


def floored(ratios: Iterable[float]) -> list[float]:
    """Loss ratios for a log scale: those below the floor at the floor."""
    return [max(PLR_FLOOR, ratio) for ratio in ratios]


def _decade(ratio: float, _: int | None) -> str:
    power = f"$10^{{{math.log10(ratio):.0f}}}$"
    return f"≤ {power}" if ratio <= PLR_FLOOR else power
