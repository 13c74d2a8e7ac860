"""Two builds compared: the PDR of each boot, pair by pair, and what the pairs so far said of the change."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pdrgate.reports.plots.page import BLUE, FAINT, INK, ORANGE, RED, legend, page, png, styled
from pdrgate.reports.plots.scales import rate_axis
from pdrgate.stats.intervals import paired_change_interval


def pairs(
    baseline: Sequence[float], candidate: Sequence[float], tolerance: float, *, title: str, labels: tuple[str, str]
) -> bytes:
    """The boots of two builds as PNG; PDRs in packets/s, as many of each, at least one.

    Args:
        labels: of the baseline and of the candidate.
    """
    return png(pairs_figure(baseline, candidate, tolerance, title, labels))


@styled
def pairs_figure(
    baseline: Sequence[float], candidate: Sequence[float], tolerance: float, title: str, labels: tuple[str, str]
) -> Figure:
    figure = page(title, "pairs of boots, one of each build")
    above, below = figure.subplots(2, 1, sharex=True)
    numbers = range(1, len(candidate) + 1)
    above.plot(numbers, baseline, "s-", color=ORANGE, markersize=5, linewidth=0.8, label=f"baseline: {labels[0]}")
    above.plot(numbers, candidate, "o-", color=BLUE, markersize=5, linewidth=0.8, label=f"candidate: {labels[1]}")
    above.set_ylabel("PDR of the boot")
    rate_axis(above.yaxis)
    _changes(below, baseline, candidate, tolerance)
    below.set_xlabel("pair of boots")
    below.set_ylabel("change (%)")
    below.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend(figure)
    return figure


def _changes(axes: Axes, baseline: Sequence[float], candidate: Sequence[float], tolerance: float) -> None:
    """Each pair's change, and the mean with its interval as it was known after each pair."""
    changes = [100 * (value / base - 1) for value, base in zip(candidate, baseline, strict=True)]
    axes.axhline(0, color=FAINT, linewidth=0.7)
    axes.axhline(-100 * tolerance, color=RED, linewidth=1.2, linestyle="--", label=f"tolerance, {tolerance:.1%} slower")
    axes.plot(range(1, len(changes) + 1), changes, ".", color=BLUE, alpha=0.5, label="change of each pair")
    known = range(2, len(changes) + 1)
    found = [paired_change_interval(candidate[:number], baseline[:number]) for number in known]
    if found:
        lows = [100 * one.interval.low for one in found]
        highs = [100 * one.interval.high for one in found]
        axes.plot(known, [100 * one.estimate for one in found], color=INK, linewidth=1.4, label="change so far")
        axes.fill_between(known, lows, highs, color=INK, alpha=0.12, linewidth=0, label="its 95 % interval")
        # The first intervals, of two or three pairs, would make all else flat.
        room = 1.3 * max(10 * tolerance, *(abs(change) for change in changes), *(map(abs, (*lows[2:], *highs[2:]))), 1)
        bottom, top = min([*lows, *changes, -100 * tolerance]), max([*highs, *changes, 0.0])
        axes.set_ylim(max(-room, bottom) - 0.5, min(room, top) + 0.5)
