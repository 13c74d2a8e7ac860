"""The instructions of a packet are plotted by function, of one build, or of two beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from pdrgate.reports.plots.page import BLUE, FAINT, ORANGE, label, legend, page, styled
from pdrgate.reports.words.costs import sure_changes
from pdrgate.results.model import ScenarioResult

_MOST = 15
_SUBTITLE = "instructions per packet at saturation; inlined functions count for their callers"


def functions(scenario: ScenarioResult) -> Figure | None:
    """The functions that surely changed most, before and after, else the largest; None where none did, or nothing was
    counted."""
    if scenario.comparison is not None and scenario.comparison.functions:
        rows = sure_changes(scenario.comparison.functions)[:_MOST]
        bars = {"before": [row.before for row in rows], "after": [row.after for row in rows]}
        texts = [f" {row.change:+z.1f}" for row in rows]
        return _bars(scenario, [row.label for row in rows], bars, texts) if rows else None
    cost = scenario.findings.cost
    largest = cost.functions[:_MOST] if cost is not None else ()
    bars = {"": [row.instructions for row in largest]}
    return _bars(scenario, [row.name for row in largest], bars) if largest else None


@styled
def _bars(
    scenario: ScenarioResult, names: Sequence[str], bars: Mapping[str, Sequence[float]], texts: Sequence[str] = ()
) -> Figure:
    figure = page(scenario.label, _SUBTITLE)
    axes = figure.subplots()
    for number, (name, values) in enumerate(bars.items()):
        middle = (number - (len(bars) - 1) / 2) * 0.4
        color = BLUE if name != "before" else ORANGE
        axes.barh([at + middle for at in range(len(names))], values, 0.76 / len(bars), color=color, label=name or None)
    for at, text in enumerate(texts):
        axes.text(max(values[at] for values in bars.values()), at, text, va="center", fontsize=8.5, color=FAINT)
    axes.set_yticks(range(len(names)), [label(name) for name in names])
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlabel("instructions per packet")
    if len(bars) > 1:
        legend(figure)
    return figure
