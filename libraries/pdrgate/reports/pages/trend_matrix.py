"""Many runs in one picture: a row for each path, a column for each run, and in each cell what changed.

A cell has the change since the first run of its row, of what a packet costs where that was counted, else of the first
measurand. Its colour is a class: how much worse or better. The title of a cell has the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from pdrgate.data_paths.catalogue import DATA_PATHS
from pdrgate.gate.judged_again.trend_costs import FunctionsBetween
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
    group: str
    """The data path that it is set up on, in words."""
    cells: Sequence[MatrixCell]


@dataclass(frozen=True, slots=True)
class TrendMatrix:
    """Rows of paths and columns of runs, the worst row first."""

    columns: Sequence[tuple[str, str]]
    """A text for each run, its build and its day, and the address of its page; empty where that is not known."""
    groups: Sequence[tuple[str, Sequence[MatrixRow]]]
    """Rows by what they are set up on; the group with the worst row first."""
    left_out: int
    """Older runs that are not shown."""


def trend_matrix(
    all_series: Sequence[Series], links: Mapping[tuple[str, str, str], str],
    addresses: Mapping[tuple[float, str], str] | None = None, functions: FunctionsBetween | None = None,
) -> TrendMatrix | None:  # fmt: skip
    """The matrix of some series; None for a single path or a single run.

    Args:
        links: addresses of charts by scenario, testbed and fingerprint.
        addresses: folders of runs, from where the page lies, by when they began and their names.
        functions: the functions that changed between two points of a series, in words.
    """
    chosen = series_of_matrix(all_series)
    runs = {(point.time, point.run): point for one in chosen for point in one.points}
    order = sorted(runs)
    if len(chosen) < _FEWEST or len(order) < _FEWEST:
        return None
    shown = order[-_MOST:]
    rows = sorted((_row(one, shown, links, functions) for one in chosen), key=lambda row: -row.order)
    columns = [
        (f"{printable(runs[key].build)}, {day(runs[key])}", quote((addresses or {}).get(key, ""))) for key in shown
    ]
    names = dict.fromkeys(row.group for row in rows)
    groups = [(name, [row for row in rows if row.group == name]) for name in names]
    return TrendMatrix(columns, groups, len(order) - len(shown))


def path_of(series: Series) -> tuple[str, str, str]:
    """What all series of a path on a testbed have in common."""
    return series.scenario, series.testbed, series.fingerprint


def _group(series: Series) -> str:
    """The data path that the stored name begins with; the longest, where it begins with several."""
    names = [name for name in DATA_PATHS if series.scenario.startswith(f"{name}-")]
    return DATA_PATHS[max(names, key=len)].title if names else "Others"


def series_of_matrix(all_series: Sequence[Series]) -> list[Series]:
    """One series of each path: what a packet costs, else the first."""
    found: dict[tuple[str, str, str], Series] = {}
    for one in all_series:
        key = path_of(one)
        if key not in found or one.measurand == Cost.name:
            found[key] = one
    return [*found.values()]


def _row(
    series: Series, shown: Sequence[tuple[float, str]], links: Mapping[tuple[str, str, str], str],
    functions: FunctionsBetween | None,
) -> MatrixRow:  # fmt: skip
    points = {(point.time, point.run): point for point in series.points if math.isfinite(point.value)}
    counted = [point for point in series.points if point.counts]
    first = counted[0] if counted else None
    cells, before = [], None
    for key in shown:
        point = points.get(key)
        cells.append(MatrixCell() if point is None else _cell(series, point, first, before, functions))
        before = point if point is not None and point.counts else before
    change = _change(first, counted[-1]) if first is not None else None
    worse = 0.0 if change is None else change if series.better == "lower" else -change
    return MatrixRow(
        printable(series.title), "" if change is None else f"{change:+z.1%}", worse,
        links.get(path_of(series), ""), _group(series), cells,
    )  # fmt: skip


def _cell(
    series: Series, point: Point, first: Point | None, before: Point | None, functions: FunctionsBetween | None
) -> MatrixCell:
    return MatrixCell(_tone(series, point, first), "; ".join(_title(series, point, first, before, functions)))


def _tone(series: Series, point: Point, first: Point | None) -> str:
    """Classes of the colour: ``out``, ``same``, ``worse-1`` to ``worse-4``, ``better-…``; ``red`` for REGRESSION."""
    if not point.counts or first is None:
        return "out"
    tone = tone_of(series, _change(first, point))
    return f"{tone} red" if point.verdict is Verdict.REGRESSION else tone


def tone_of(series: Series, change: float) -> str:
    """The class of the colour of a change, a fraction: ``same``, ``worse-1`` to ``worse-4``, ``better-…``."""
    step = sum(abs(change) >= one for one in _STEPS)
    worse = (change > 0) == (series.better == "lower")
    return f"{'worse' if worse else 'better'}-{step}" if step else "same"


def _title(
    series: Series, point: Point, first: Point | None, before: Point | None, functions: FunctionsBetween | None
) -> Iterator[str]:
    build = cut(printable(point.build).partition(" (")[0], _BUILD)
    value = value_in_words(point.value, series.unit).removesuffix(series.unit).rstrip()
    yield f"{build}, {day(point)}: {value}"
    if first is not None and first is not point and point.counts:
        yield f"{_change(first, point):+z.1%}"
    if before is not None and before is not first and point.counts:
        yield f"{_change(before, point):+z.1%} at once"
    moved = before is not None and point.counts and abs(_change(before, point)) >= _STEPS[0]
    can_name = functions is not None and series.measurand == Cost.name
    if moved and can_name and functions and before and (changed := functions(series, before, point)):
        yield printable(changed)
    if point.verdict is not Verdict.PASS:
        yield str(point.verdict)


def _change(first: Point, point: Point) -> float:
    return point.value / first.value - 1.0
