"""Many runs in one picture: a row for each path, a column for each run, and in each cell what changed.

A cell has the change since the first run of its row, of what a packet costs where that was counted, else of the first
measurand. Its colour is a class: how much worse or better. The title of a cell has the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pdrgate.measurands import Cost
from pdrgate.reports.markup.gfm import cut
from pdrgate.reports.words.measurands import value_in_words
from pdrgate.reports.words.trend_lines import day
from pdrgate.results.verdict import Verdict
from pdrgate.trend import Point, Series
from pdrgate.values.printable import printable

_MOST = 200
"""Runs that the matrix shows: the newest."""
_STEPS = (0.005, 0.01, 0.02, 0.05)
"""Changes from which on a cell has the next stronger colour."""
_BUILD = 30
"""Characters of a build's name in the title of a cell."""
_FEWEST = 2
"""Rows and columns below which a matrix shows nothing that a chart does not."""


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """A path in a run; without a tone and a title where it was not measured."""

    tone: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A path over all runs."""

    name: str
    latest: str
    """The newest change since the first run, in words."""
    order: float
    """Newest change as a number, larger where it is worse."""
    link: str
    """Address of its charts on the page."""
    cells: Sequence[MatrixCell]


@dataclass(frozen=True, slots=True)
class TrendMatrix:
    """Rows of paths and columns of runs, the worst row first."""

    columns: Sequence[str]
    """A text for each run: its builds and its day."""
    rows: Sequence[MatrixRow]
    left_out: int
    """Older runs that are not shown."""


def trend_matrix(all_series: Sequence[Series], links: Mapping[tuple[str, str, str], str]) -> TrendMatrix | None:
    """The matrix of some series; None for a single path or a single run.

    Args:
        links: addresses of charts by scenario, testbed and fingerprint.
    """
    chosen = series_of_matrix(all_series)
    runs = {(point.time, point.run): point for one in chosen for point in one.points}
    order = sorted(runs)
    if len(chosen) < _FEWEST or len(order) < _FEWEST:
        return None
    shown = order[-_MOST:]
    rows = [_row(one, shown, links) for one in chosen]
    columns = [f"{printable(runs[key].build)}, {day(runs[key])}" for key in shown]
    return TrendMatrix(columns, sorted(rows, key=lambda row: -row.order), len(order) - len(shown))


def series_of_matrix(all_series: Sequence[Series]) -> list[Series]:
    """One series of each path: what a packet costs, else the first."""
    found: dict[tuple[str, str, str], Series] = {}
    for one in all_series:
        key = one.scenario, one.testbed, one.fingerprint
        if key not in found or one.measurand == Cost.name:
            found[key] = one
    return [*found.values()]


def _row(series: Series, shown: Sequence[tuple[float, str]], links: Mapping[tuple[str, str, str], str]) -> MatrixRow:
    points = {(point.time, point.run): point for point in series.points if math.isfinite(point.value)}
    counted = [point for point in series.points if point.counts]
    first = counted[0] if counted else None
    cells, before = [], None
    for key in shown:
        point = points.get(key)
        cells.append(MatrixCell() if point is None else _cell(series, point, first, before))
        before = point if point is not None and point.counts else before
    change = _change(first, counted[-1]) if first is not None else None
    worse = 0.0 if change is None else change if series.better == "lower" else -change
    return MatrixRow(
        printable(series.title), "" if change is None else f"{change:+z.1%}", worse,
        links.get((series.scenario, series.testbed, series.fingerprint), ""), cells,
    )  # fmt: skip


def _cell(series: Series, point: Point, first: Point | None, before: Point | None) -> MatrixCell:
    return MatrixCell(_tone(series, point, first), "; ".join(_title(series, point, first, before)))


def _tone(series: Series, point: Point, first: Point | None) -> str:
    """Classes of the colour: ``out``, ``same``, ``worse-1`` to ``worse-4``, ``better-…``; ``red`` for REGRESSION."""
    if not point.counts or first is None:
        return "out"
    change = _change(first, point)
    step = sum(abs(change) >= one for one in _STEPS)
    worse = (change > 0) == (series.better == "lower")
    tone = f"{'worse' if worse else 'better'}-{step}" if step else "same"
    return f"{tone} red" if point.verdict is Verdict.REGRESSION else tone


def _title(series: Series, point: Point, first: Point | None, before: Point | None) -> Iterator[str]:
    build = cut(printable(point.build).partition(" (")[0], _BUILD)
    value = value_in_words(point.value, series.unit).removesuffix(series.unit).rstrip()
    yield f"{build}, {day(point)}: {value}"
    if first is not None and first is not point and point.counts:
        yield f"{_change(first, point):+z.1%}"
    if before is not None and before is not first and point.counts:
        yield f"{_change(before, point):+z.1%} at once"
    if point.verdict is not Verdict.PASS:
        yield str(point.verdict)


def _change(first: Point, point: Point) -> float:
    return point.value / first.value - 1.0
