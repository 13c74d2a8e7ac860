"""Latency at shares of the PDR, of one build, or of two at the same loads."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

from pdrgate.reports.plots.page import OF_BUILD, Stamp, legend, page, styled
from pdrgate.reports.words.latencies import latency_by_build, share_in_words
from pdrgate.results.model import LatencyResult, ScenarioResult
from pdrgate.values.units import Rate

_QUANTILES = (("median", "o", "-"), ("90 %", "s", "--"), ("99 %", "^", ":"))


@styled
def latency_plot(scenario: ScenarioResult) -> Figure | None:
    """Median, 90 and 99 % at each share; None where no latency was measured."""
    found = dict(latency_by_build(scenario))
    if not found:
        return None
    figure = page(scenario.label, "one-way latency of probes, medians over the trials", judged=Stamp(scenario.verdict))
    axes = figure.subplots()
    for label, own in found.items():
        of = f"{label}, " if label else ""
        values = zip(*((one.p50, one.p90, one.p99) for one in own), strict=True)
        for (name, marker, line), each in zip(_QUANTILES, values, strict=True):
            axes.plot(
                range(len(own)), each, marker, linestyle=line, color=OF_BUILD[label], markersize=6, label=f"{of}{name}"
            )
    longest = max(found.values(), key=len)
    axes.set_xticks(range(len(longest)), [f"{share_in_words(one)}\n{Rate(one.load)}{_cost(one)}" for one in longest])
    axes.set_xlim(-0.3, len(longest) - 0.7)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(EngFormatter("s"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel("latency")
    legend(figure)
    return figure


def _cost(one: LatencyResult) -> str:
    if one.instructions is None:
        return ""
    batch = f"\n{one.batch:.3g} packets a poll" if one.batch is not None else ""
    return f"\n{one.instructions:.0f} instructions/packet{batch}"
