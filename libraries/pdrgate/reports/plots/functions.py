"""The instructions of a packet are plotted by function, of one build, or of two beside each other."""

from __future__ import annotations

from matplotlib.figure import Figure

from pdrgate.reports.plots.page import BLUE, FAINT, ORANGE, label, legend, page, png, styled
from pdrgate.results.model import ScenarioResult

_MOST = 15
_SUBTITLE = "instructions per packet at saturation; inlined functions count for their callers"


def functions(scenario: ScenarioResult) -> bytes | None:
    """The functions that changed most, before and after, else the largest, as PNG; None where nothing was counted."""
    if scenario.comparison is not None and scenario.comparison.functions:
        return png(_changes(scenario))
    return png(_largest(scenario)) if scenario.findings.cost is not None and scenario.findings.cost.functions else None


@styled
def _changes(scenario: ScenarioResult) -> Figure:
    assert scenario.comparison is not None
    rows = scenario.comparison.functions[:_MOST]
    figure = page(scenario.label, _SUBTITLE)
    axes = figure.subplots()
    at = range(len(rows))
    axes.barh([one - 0.2 for one in at], [row.before for row in rows], 0.38, color=ORANGE, label="before")
    axes.barh([one + 0.2 for one in at], [row.after for row in rows], 0.38, color=BLUE, label="after")
    for one, row in zip(at, rows, strict=True):
        doubt = "" if row.sure else " (within what trials differ by)"
        text, end = f" {row.change:+z.1f}{doubt}", max(row.before, row.after)
        axes.text(end, one, text, va="center", fontsize=8.5, color=FAINT)
    axes.set_yticks(list(at), [label(row.label) for row in rows])
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlabel("instructions per packet")
    legend(figure)
    return figure


@styled
def _largest(scenario: ScenarioResult) -> Figure:
    assert scenario.findings.cost is not None
    rows = scenario.findings.cost.functions[:_MOST]
    figure = page(scenario.label, _SUBTITLE)
    axes = figure.subplots()
    axes.barh(range(len(rows)), [row.instructions for row in rows], 0.7, color=BLUE)
    axes.set_yticks(range(len(rows)), [label(row.name) for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("instructions per packet")
    return figure
