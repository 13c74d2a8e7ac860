"""What TCP did: throughput and round trips by window where windows were swept, and over time within each repeat."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pdrgate.record.phase import Phase
from pdrgate.reports.plots.page import BLUE, FAINT, ORANGE, Stamp, legend, page, styled
from pdrgate.results.model import ScenarioResult, TransferResult

_KIB = 1024


@styled
def transfers(scenario: ScenarioResult) -> Figure | None:
    """Throughput and round trip time by window and over time; None where no transfer was made under load."""
    found = scenario.details.transfers
    if found is None or not any(one.phase in (Phase.CURVE, Phase.REPEAT) for one in found.transfers):
        return None
    rest = f"; at rest {1e3 * found.rest_rtt:.3g} ms" if found.rest_rtt is not None else ""
    subtitle = f"throughput, and the senders' smoothed round trip time{rest}"
    figure = page(scenario.label, subtitle, judged=Stamp(scenario.verdict))
    curve = [one for one in found.transfers if one.phase == Phase.CURVE]
    repeats = [one for one in found.transfers if one.phase == Phase.REPEAT and one.rates]
    panels = [part for part in (curve, repeats) if part]
    for number, part in enumerate(panels, start=1):
        axes = figure.add_subplot(len(panels), 1, number)
        if part is curve:
            _by_window(axes, curve, found.knee)
        else:
            _over_time(axes, repeats)
    legend(figure)
    return figure


def _by_window(axes: Axes, curve: Sequence[TransferResult], knee: int | None) -> None:
    windows = [one.window / _KIB for one in curve]
    axes.plot(windows, [one.throughput / 1e9 for one in curve], "o", color=BLUE, label="throughput (Gbit/s)")
    trips = [(one.window / _KIB, 1e3 * one.rtt) for one in curve if one.rtt is not None]
    other = _second(axes)
    other.plot(*zip(*trips, strict=True), "x", color=ORANGE, label="round trip (ms)")
    axes.set_xscale("log", base=2)
    ticks = sorted(set(windows))
    axes.set_xticks(ticks, [f"{one:g}" for one in ticks])
    axes.set_xlabel("window (KiB)")
    _from_zero(axes, other)
    if knee is not None:
        axes.axvline(knee / _KIB, color=FAINT, linestyle="--", linewidth=1.0, label="knee")


def _over_time(axes: Axes, repeats: Sequence[TransferResult]) -> None:
    """Transfers after each other, as they were made; a line between two of them."""
    other, at = _second(axes), 0
    for one in repeats:
        looks = range(at, at + len(one.rates))
        axes.plot(looks, [rate / 1e9 for rate in one.rates], color=BLUE, linewidth=1.2, label="throughput (Gbit/s)")
        trips = range(at, at + len(one.rtts))
        other.plot(trips, [1e3 * rtt for rtt in one.rtts], color=ORANGE, linewidth=0.9, label="round trip (ms)")
        at += len(one.rates)
        axes.axvline(at - 0.5, color=FAINT, linewidth=0.4)
    axes.set_xlabel("looks at TCP_INFO, ten a second; a line between two transfers")
    axes.set_xlim(-0.5, at - 0.5)
    _from_zero(axes, other)


def _second(axes: Axes) -> Axes:
    """The axis of round trips, on the right."""
    other: Axes = axes.twinx()
    other.grid(visible=False)
    other.spines["right"].set_visible(True)
    other.set_ylabel("round trip (ms)")
    axes.set_ylabel("throughput (Gbit/s)")
    return other


def _from_zero(*both: Axes) -> None:
    """Once all is drawn."""
    for axes in both:
        axes.set_ylim(bottom=0)
