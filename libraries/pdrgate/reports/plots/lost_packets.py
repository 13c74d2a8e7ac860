"""Lost packets are plotted with a bar for each place, of one build, or of two beside each other."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from pdrgate.reports.plots.page import FAINT, OF_BUILD, legend, page, styled
from pdrgate.reports.words.loss_words import by_build
from pdrgate.results.losses import LossResult, thousands
from pdrgate.results.model import ScenarioResult

_MOST = 12
_UNEXPLAINED = "unexplained"


@styled
def lost_packets_plot(scenario: ScenarioResult) -> Figure | None:
    """A bar for each place, as long as its part of the offered packets; None where nothing was lost."""
    found = dict(by_build(scenario))
    if not any(one.lost for one in found.values()):
        return None
    shares = {label: _shares(one) for label, one in found.items()}
    places = sorted(
        {place for one in shares.values() for place in one},
        key=lambda place: (place == _UNEXPLAINED, -max(one.get(place, 0) for one in shares.values())),
    )[:_MOST]
    figure = page(scenario.label, "offered = handled + what each place lost + unexplained; all repeats together")
    axes = figure.subplots()
    height = 0.8 / len(shares)
    for number, (label, own) in enumerate(shares.items()):
        at = [one + (number - (len(shares) - 1) / 2) * height for one in range(len(places))]
        values = [own.get(place, 0.0) for place in places]
        axes.barh(at, values, 0.92 * height, color=OF_BUILD[label], label=label or None)
        for one, value in zip(at, values, strict=True):
            if value:
                packets = thousands(round(value * found[label].offered))
                axes.text(value, one, f" {packets} packets", va="center", fontsize=8.5, color=FAINT)
    axes.set_yticks(range(len(places)), places)
    axes.set_ylim(max(len(places), 3) - 0.5, -0.5)
    axes.margins(x=0.2)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel("part of the offered packets")
    if len(shares) > 1:
        legend(figure)
    return figure


def _shares(found: LossResult) -> dict[str, float]:
    """The part of the offered packets that each place lost; what is unexplained too, unless it is too little to
    matter."""
    named = {
        place.where + (f"\n({place.hint})" if place.hint else ""): place.packets / found.offered
        for place in found.places
    }
    return named | ({_UNEXPLAINED: found.unexplained / found.offered} if found.fault and found.unexplained > 0 else {})
