"""Two runs on one page: a row for each path, a column for each measurand. It sorts and filters with scripts.

Sorting and filtering are thirty lines of the page's own. A library of tables is larger than the page and its data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pdrgate.gate.judged_again.trend_costs import FunctionsBetween
from pdrgate.measurands import Cost
from pdrgate.reports.markup.html import rendered
from pdrgate.reports.pages.trend_matrix import path_of, tone_of
from pdrgate.reports.words.measurands import value_in_words
from pdrgate.reports.words.trend_lines import day
from pdrgate.trend import Point, Series
from pdrgate.values.errors import DataError
from pdrgate.values.printable import printable

RunKey = tuple[float, str]
"""When a run began, and its name."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A measurand of a path in both runs."""

    text: str = ""
    title: str = ""
    tone: str = ""
    order: float = -math.inf
    """What its column is sorted by: larger where it is worse."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A path in both runs."""

    path: str
    before: str
    after: str
    """The verdict of each run on it; empty where it was not measured."""
    changes: Sequence[_Change]
    functions: str


def runs_page(all_series: Sequence[Series], addresses: Mapping[RunKey, str], functions: FunctionsBetween) -> str:
    """The page of the two newest runs of some series.

    Args:
        addresses: folders of runs, from where the page lies, by when they began and their names.
        functions: the functions that changed between two points of a series, in words.

    Raises:
        DataError: there are not two runs.
    """
    runs = {(point.time, point.run): point for one in all_series for point in one.points}
    if len(runs) < 2:
        raise DataError("a table of runs compares two, and there are not two; name the folders of both")
    before, after = sorted(runs)[-2:]
    measurands = sorted({one.measurand for one in all_series}, key=lambda name: (name != Cost.name, name))
    paths: dict[tuple[str, str, str], dict[str, Series]] = {}
    for one in all_series:
        if any((point.time, point.run) in (before, after) for point in one.points):
            paths.setdefault(path_of(one), {})[one.measurand] = one
    rows = [_row(own, measurands, before, after, functions) for own in paths.values()]
    rows.sort(key=lambda row: (-max((one.order for one in row.changes[:1]), default=0.0), row.path))
    return rendered(
        "runs.html.j2", rows=rows, measurands=measurands,
        runs=[(f"{printable(runs[key].build)}, {day(runs[key])}", addresses.get(key, "")) for key in (before, after)],
    )  # fmt: skip


def _row(
    own: Mapping[str, Series], measurands: Sequence[str], before: RunKey, after: RunKey, functions: FunctionsBetween
) -> _Row:
    changes, verdicts, called = [], ["", ""], ""
    for name in measurands:
        points = {} if name not in own else {(one.time, one.run): one for one in own[name].points}
        ends = points.get(before), points.get(after)
        verdicts = [str(one.verdict) if one is not None else known for one, known in zip(ends, verdicts, strict=True)]
        if ends[0] is None or ends[1] is None:
            changes.append(_Change())
            continue
        changes.append(_change(own[name], ends[0], ends[1]))
        if name == Cost.name:
            called = functions(own[name], ends[0], ends[1])
    first = next(iter(own.values()))
    return _Row(printable(first.title), verdicts[0], verdicts[1], changes, printable(called))


def _change(series: Series, before: Point, after: Point) -> _Change:
    values = [value_in_words(one.value, series.unit) for one in (before, after)]
    title = f"{series.measurand}: {values[0]}, then {values[1]}"
    if not before.counts or not after.counts:
        return _Change("no number that counts", title, "out")
    change = after.value / before.value - 1.0
    return _Change(f"{change:+z.1%}", title, tone_of(series, change), change if series.better == "lower" else -change)
