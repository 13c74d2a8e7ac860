"""What came out: forwarding rate and delivery ratio against offered load, with the TIR of each step."""

from __future__ import annotations

from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pdrgate.reports.plots.marks import mark_limited, mark_pdr, mark_repeats, mark_saturation, say_pdr
from pdrgate.reports.plots.page import BLUE, FAINT, INK, PURPLE, Stamp, legend, page, styled
from pdrgate.reports.plots.scales import load_axis, rate_axis
from pdrgate.results.model import AssessmentResult


@styled
def rates(found: AssessmentResult, title: str, subtitle: str = "", judged: Stamp | None = None) -> Figure:
    """Forwarding rate and delivery ratio against offered load, with the TIR of each step."""
    figure = page(title, subtitle, found, judged)
    throughput, increase, delivery = figure.subplots(3, sharex=True, height_ratios=(5, 1.3, 3))
    load_axis(delivery, found)
    for axes in (throughput, increase, delivery):
        mark_saturation(axes, found)
        mark_pdr(axes, found)
    say_pdr(throughput, found)
    mark_limited(throughput, found)
    _throughput(throughput, found)
    _increase(increase, found)
    _delivery(delivery, found)
    legend(figure)
    return figure


def _throughput(axes: Axes, found: AssessmentResult) -> None:
    points, ends = found.loads, axes.get_xlim()
    axes.plot(ends, ends, color=FAINT, linestyle="--", linewidth=1.2, label="ideal: all handled")
    mark_repeats(axes, points, lambda point: point.throughputs, BLUE)
    means = [point.throughput for point in points]
    axes.plot([point.load for point in points], means, "o-", color=BLUE, zorder=3, label="rate handled")
    rate_axis(axes.yaxis)
    axes.set_ylabel("rate handled", color=BLUE)


def _increase(axes: Axes, found: AssessmentResult) -> None:
    """A bar per step between two loads: how much of the added load came out."""
    loads, heights = [point.load for point in found.loads], found.saturation.tir
    middles = [(low + high) / 2 for low, high in pairwise(loads)]
    widths = [0.96 * (high - low) for low, high in pairwise(loads)]
    bars = axes.bar(middles, heights, widths, color="#c5ccd3", label="TIR of each step")
    axes.bar_label(bars, [f"{height:z.2f}" for height in heights], fontsize=8.5, padding=1)
    axes.margins(y=0.5)
    axes.set_ylabel("TIR")


def _delivery(axes: Axes, found: AssessmentResult) -> None:
    points, bound = found.loads, 100 * (1 - found.pdr.plr_threshold)
    axes.axhline(bound, color=INK, linestyle="--", linewidth=1, label=f"delivery ratio {bound:.6g} %")
    mark_repeats(axes, points, lambda point: [100 * (1 - loss) for loss in point.losses], PURPLE)
    means = [100 * (1 - point.plr) for point in points]
    axes.plot(
        [point.load for point in points], means, "D-", markersize=5, color=PURPLE, zorder=3, label="delivery ratio"
    )
    axes.set_ylabel("delivery ratio (%)", color=PURPLE)
