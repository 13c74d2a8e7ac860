"""What all pictures share: their size and style, the header above the axes and the legend below.

matplotlib's constrained layout places axes, labels and legend; only the header's lines are placed here.
"""

from __future__ import annotations

import io
import textwrap
from dataclasses import dataclass

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from pdrgate.reports.markup.gfm import cut
from pdrgate.results.model import AssessmentResult

INK, FAINT = "#1f2328", "#59636e"
BLUE, RED, BROWN = "#0057b8", "#c8102e", "#7d5600"
GREEN, ORANGE, VERMILION, PURPLE, SKY = "#00795a", "#e69f00", "#d55e00", "#8f4a86", "#56b4e9"
OF_BUILD = {"baseline": ORANGE, "candidate": BLUE, "": BLUE}
_VERDICT_COLOURS = (
    dict.fromkeys(("STABLE", "PASS", "IMPROVEMENT", "NO_BASELINE"), GREEN)
    | dict.fromkeys(("UNSTABLE", "REGRESSION", "CRASH", "ASSERTION_FAILED"), "#b3261e")
    | dict.fromkeys(("GENERATOR_LIMITED", "DISTURBED", "ERROR"), "#5b5f97")
    | {"INCONCLUSIVE": "#8a6100"}
)

_NOT_OF_THE_SUT = ("DISTURBED", "ERROR", "CRASH")
"""Verdicts beside which it is not said how well the SUT did."""

_WIDTH, _HEIGHT, _DPI = 10.0, 6.4, 110
_LEFT, _TOP = 0.02, 0.975
_TITLE_SIZE, _TEXT_SIZE = 15.0, 10.0
_LINE_SPACING = 1.45

styled = matplotlib.rc_context(
    {
        "font.size": 9.5,
        "text.color": INK,
        "axes.axisbelow": True,
        "axes.edgecolor": "#8c959f",
        "axes.formatter.useoffset": False,
        "axes.grid": True,
        "axes.labelcolor": INK,
        "axes.labelsize": 10.5,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "grid.color": "#e3e7ec",
        "grid.linewidth": 0.7,
        "legend.frameon": False,
        "xtick.color": "#8c959f",
        "xtick.labelcolor": INK,
        "ytick.color": "#8c959f",
        "ytick.labelcolor": INK,
    }
)
"""Decorates a function that draws, so that it does so in our style whatever the user's is."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a picture's badge says, and in a line below it why."""

    verdict: str
    reason: str = ""


def page(title: str, subtitle: str = "", found: AssessmentResult | None = None, judged: Stamp | None = None) -> Figure:
    """An empty picture with its header: what it is of, and for an assessment its verdict, its label and the reason.

    Args:
        judged: what stands there in place of an assessment's own verdict: that of the scenario that it is part of.
    """
    figure = Figure(figsize=(_WIDTH, _HEIGHT), dpi=_DPI)
    FigureCanvasAgg(figure)  # what is laid out and what is drawn share a renderer: texts are measured once
    top = _line(figure, _TOP, cut(title, 80), INK, size=_TITLE_SIZE, weight="bold")
    if judged is None and found is not None:
        judged = Stamp(found.verdict, found.reason)
    if judged is not None:
        grade = f" · {found.labels.get(found.reading, '')} ({found.reading} reading)" if found is not None else ""
        _badge(figure, top, judged.verdict, grade if judged.verdict not in _NOT_OF_THE_SUT else "")
    if subtitle or judged is not None:
        top = _line(figure, top, cut(subtitle, 80), FAINT)
    if judged is not None and judged.reason:
        for line in textwrap.wrap(f"{judged.verdict}: {judged.reason}", 132, max_lines=2, placeholder=" …"):
            top = _line(figure, top, line, _VERDICT_COLOURS.get(judged.verdict, INK))
    figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08, rect=(0.0, 0.0, 1.0, top)))
    return figure


def legend(figure: Figure) -> None:
    """A legend for all axes, below them; it has a label that several axes share once."""
    entries = {
        label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if entries:
        columns = 3 if max(map(len, entries)) < 40 else 2
        figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns)


def png(figure: Figure) -> bytes:
    """The picture as a file's bytes."""
    layout = figure.get_layout_engine()
    if layout is not None:
        # By itself savefig draws all of it once more only to have it laid out.
        layout.execute(figure)
        figure.set_layout_engine(None)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": "pdrgate"})
    return buffer.getvalue()


def _line(
    figure: Figure, top: float, text: str, colour: str, size: float = _TEXT_SIZE, weight: str = "normal"
) -> float:
    """A line of the header that begins at ``top``, and where the next one does."""
    figure.text(_LEFT, top, text, size=size, color=colour, weight=weight, va="top", parse_math=False)
    return top - _LINE_SPACING * size / 72 / _HEIGHT


def _badge(figure: Figure, top: float, verdict: str, further: str = "") -> None:
    label = f"{verdict.replace('_', ' ')}{further}"
    text = figure.text(1 - 1.5 * _LEFT, top, label, size=_TEXT_SIZE, color="white", weight="bold", ha="right", va="top")
    colour = _VERDICT_COLOURS.get(verdict, INK)
    text.set_bbox({"boxstyle": "round,pad=0.25", "facecolor": colour, "edgecolor": colour})


def label(name: str, length: int = 60) -> str:
    """A name as a legend or an axis has room for it; a dollar in it begins no formula."""
    return cut(name, length).replace("$", r"\$")
