"""The page trend.html: many runs on one page that needs nothing else.

Words appear where somebody points, and charts grow, without a script. Where scripts are allowed, one zooms into a chart
besides.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from markupsafe import Markup

from pdrgate.gate.judged_again.trend_costs import FunctionsBetween
from pdrgate.reports.markup.gfm import cut
from pdrgate.reports.markup.html import rendered, table_html
from pdrgate.reports.pages.round_values import round_values
from pdrgate.reports.pages.trend_matrix import path_of, series_of_matrix, trend_matrix
from pdrgate.reports.tree import Cell, Column, Table
from pdrgate.reports.words.measurands import value_in_words
from pdrgate.reports.words.trend_lines import day, measuring_again, what_moved
from pdrgate.results.verdict import Verdict
from pdrgate.trend import LEFT_OUT, Move, Point, Series

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 480.0, 236.0, 78.0, 470.0, 22.0, 162.0
"""A chart's size, in units that are about a pixel each on a screen, and somewhat less on a telephone."""
_FLATTEST = 0.02
"""A chart shows at least as much above and below the middle: what deviates by little shall look as if it did."""
_ALONE, _ROOM = 0.02, 0.15
"""A share of the ends of intervals that a chart need not show, and the room beyond the others."""
_MANY = 12
"""Paths beyond which the page has charts only of what the matrix shows, and of what moved."""
_CROWD = 60
"""Points beyond which the marks are smaller."""
_BUILDS = 6
"""Builds that are named below a chart, at most."""
_BUILD = 15
"""Characters of such a name. It is cut at its begin, for its end distinguishes builds."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a verdict is drawn: its shape identifies it, and its colour only repeats that."""

    path: str
    tone: str
    full: bool = False
    left_out: bool = False


_DISC = "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z"
_SHAPES = {
    Verdict.PASS: _Shape(_DISC, "pass", full=True),
    Verdict.IMPROVEMENT: _Shape("M-5 4L0-5L5 4z", "pass", full=True),
    Verdict.NO_BASELINE: _Shape(_DISC, "pass"),
    Verdict.REGRESSION: _Shape("M-5-4L0 5L5-4z", "fail", full=True),
    Verdict.INCONCLUSIVE: _Shape("M0-5L5 0L0 5L-5 0z", "warn"),
    Verdict.ASSERTION_FAILED: _Shape("M0-5L5 0L0 5L-5 0zM-2.5 0H2.5", "fail"),
    Verdict.UNSTABLE: _Shape("M-4-4L4 4M-4 4L4-4", "fail", left_out=True),
    Verdict.CRASH: _Shape("M-4-4L4 4M-4 4L4-4M-5-5H5V5H-5z", "fail", left_out=True),
    Verdict.DISTURBED: _Shape("M-5 0H5M0-5V5", "fault", left_out=True),
    Verdict.GENERATOR_LIMITED: _Shape("M-4-4H4V4H-4z", "fault", left_out=True),
    Verdict.ERROR: _Shape("M-4-4H4V4H-4zM-4-4L4 4", "fault", left_out=True),
}


@dataclass(frozen=True, slots=True)
class _Band:
    """A band of a chart: a level changed there."""

    x: float
    width: float
    middle: float
    anchor: str
    label: str
    tone: Literal["worse", "better", "quiet"]
    """Quiet where somebody has looked at it."""


@dataclass(frozen=True, slots=True)
class _Level:
    """The level of a baseline, from its build on."""

    x: float
    y: float
    title: str


@dataclass(frozen=True, slots=True)
class _Mark:
    """A point of a series as it is drawn."""

    x: float
    y: float
    verdict: Verdict
    lines: Sequence[str]
    """Words that appear where somebody points at it."""
    pinned: bool
    """Whether a name stands for its build."""

    @property
    def anchor(self) -> str:
        """The side of the point on which there is room for words."""
        return "start" if self.x < (_LEFT + _RIGHT) / 2 else "end"

    @property
    def tip(self) -> float:
        """Place where the words begin, or end."""
        return round(self.x + (12 if self.anchor == "start" else -12), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chart:
    """A series as it is drawn."""

    measurand: str
    latest: str
    alternative: str
    ticks: Sequence[tuple[float, str]]
    bands: Sequence[_Band]
    intervals: str
    marks: Sequence[_Mark]
    level: _Level | None
    scale: float
    builds: Sequence[tuple[float, str]]
    """Builds that are named below the chart, each at its place."""
    first: str
    last: str
    width: float = _WIDTH
    height: float = _HEIGHT
    left: float = _LEFT
    top: float = _TOP
    bottom: float = _BOTTOM
    crowd: int = _CROWD
    """Marks beyond which the words of a mark are its title only."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A testbed in one state of it."""

    name: str
    moves: Sequence[Move]
    commands: Sequence[str]
    """Commands that measure again what got worse."""
    charts: Sequence[_Chart]
    anchor: str
    """Name of the place on the page."""


@dataclass(frozen=True, slots=True)
class _Section:
    """A scenario, on each testbed that it was measured on."""

    title: str
    places: Sequence[_Place]


@dataclass(frozen=True, slots=True)
class _Scale:
    """A scale takes values to places, upwards."""

    low: float
    high: float

    def y(self, value: float) -> float:
        """Within the chart: what lies beyond it stands at its rim."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(_BOTTOM - share * (_BOTTOM - _TOP), 1)


def trend_page(
    all_series: Sequence[Series],
    found: Sequence[Move],
    runs: int,
    baselines: Mapping[str, str] | None = None,
    quiet: Sequence[Move] = (),
    addresses: Mapping[tuple[float, str], str] | None = None,
    functions: FunctionsBetween | None = None,
) -> str:
    """The page: what moved first, then a chart of each series.

    Args:
        runs: how many were read.
        baselines: by the digest of a build, the names that it is pinned by.
        addresses: folders of runs, from where the page lies, by when they began and their names.
        functions: the functions that changed between two points of a series, in words.
        quiet: what moved and somebody has acknowledged: it is drawn, and stands nowhere else.
    """
    pinned = baselines or {}
    worse = sum(move.worse for move in found)
    # What is set up or measured otherwise since then has a series of its own: an earlier one has no newest run.
    by_end = sorted((one for one in all_series if one.points), key=lambda one: one.points[-1].time)
    latest = {(one.title, one.testbed, one.measurand): one for one in by_end}
    failing = max(map(_failing, latest.values()), default=0)
    headline = what_moved(found) if found or not quiet else "No level moved but those acknowledged"
    if failing and not worse:
        newest = f"The newest {'run is' if failing == 1 else f'{failing} runs are'} a REGRESSION"
        headline = newest if found else f"{newest}; no level moved"
    better = len(found) - worse
    seen = {point.verdict for one in all_series for point in one.points}
    ordered = sorted(all_series, key=lambda one: (one.scenario, one.title, one.testbed, one.fingerprint))
    anchors = {key: f"path-{number}" for number, key in enumerate(dict.fromkeys(map(path_of, ordered)), start=1)}
    drawn = _drawn(ordered, found)
    sections = [
        _Section(title, list(_by_place(list(members), found, pinned, quiet, anchors)))
        for (_, title), members in itertools.groupby(drawn, key=lambda one: (one.scenario, one.title))
    ]
    told = (
        f"{runs} run{'s' * (runs != 1)}, {len(sections)} scenario{'s' * (len(sections) != 1)}, {len(all_series)} series"
        + f", of which {len(drawn)} are drawn" * (len(drawn) < len(all_series))
        + (f"; {better} got better" * bool(better) + f"; {len(quiet)} acknowledged" * bool(quiet))
    )
    return rendered(
        "trend.html.j2",
        headline=headline,
        worse=worse or failing,
        told=f"{told}. Each point is a run, in the order in which they began."
        + " By a run's own comparison; a level has changed when enough runs stay there." * bool(failing and not worse),
        matrix=trend_matrix(
            ordered, {key: f"#{anchor}" for key, anchor in anchors.items()}, addresses, functions
        ),
        overview=Markup(_overview(found)) if found else None,
        shapes={str(verdict): shape for verdict, shape in _SHAPES.items() if verdict in seen},
        sections=sections,
        has_levels=any(chart.level for one in sections for place in one.places for chart in place.charts),
        has_baselines=any(mark.pinned for one in sections for place in one.places for chart in place.charts
                          for mark in chart.marks),
    )  # fmt: skip


def _failing(series: Series) -> int:
    """How many of its runs at the end are each a REGRESSION: too few yet, it may be, for a level that changed."""
    counting = [point for point in series.points if point.counts]
    return sum(1 for _ in itertools.takewhile(lambda one: one.verdict is Verdict.REGRESSION, reversed(counting)))


def _drawn(ordered: Sequence[Series], found: Sequence[Move]) -> Sequence[Series]:
    """The series that get a chart: all, or of many paths what the matrix shows, and what moved."""
    if len(set(map(path_of, ordered))) <= _MANY:
        return ordered
    moved = {id(move.series) for move in found}
    shown = {id(one) for one in series_of_matrix(ordered)}
    return [one for one in ordered if id(one) in moved | shown]


def _by_place(
    members: Sequence[Series], found: Sequence[Move], pinned: Mapping[str, str], quiet: Sequence[Move],
    anchors: Mapping[tuple[str, str, str], str],
) -> Iterator[_Place]:  # fmt: skip
    for (testbed, fingerprint), group in itertools.groupby(members, key=lambda one: (one.testbed, one.fingerprint)):
        own = list(group)
        moved = [move for move in found if any(move.series is one for one in own)]
        yield _Place(
            f"Testbed {testbed} ({fingerprint})",
            moved,
            measuring_again(moved),
            [_chart(one, found, pinned, quiet) for one in own],
            anchors[path_of(own[0])],
        )


def _overview(found: Sequence[Move]) -> str:
    """A row for each scenario and testbed where anything moved, with each measurand's latest change."""
    measurands = list(dict.fromkeys(move.series.measurand for move in found))
    columns = [
        Column("what moved", heads=True, wraps=True),
        *(Column(name, numeric=True, wraps=True) for name in measurands),
        Column("on"),
        Column("testbed"),
    ]
    rows = []
    for (title, testbed, _), group in _grouped(found).items():
        cells = [Cell(title)]
        for name in measurands:
            own = [move for move in group if move.series.measurand == name]
            tone: Literal["", "pass", "fail"] = "" if not own else "fail" if own[0].worse else "pass"
            earlier = f", {len(own) - 1} more" if len(own) > 1 else ""
            told = _arrow(own[0]).replace(" ", "\N{NO-BREAK SPACE}") + earlier if own else ""
            cells.append(Cell(told, tone))
        rows.append([*cells, Cell(day(group[0].after)), Cell(testbed)])
    return table_html(Table("", columns, rows))


def _grouped(found: Sequence[Move]) -> Mapping[tuple[str, str, str], Sequence[Move]]:
    """Moves by title, testbed and fingerprint, in the order in which they come."""
    groups: dict[tuple[str, str, str], list[Move]] = {}
    for move in found:
        series = move.series
        groups.setdefault((series.title, series.testbed, series.fingerprint), []).append(move)
    return groups


def _arrow(move: Move) -> str:
    return f"{'▼' if move.change < 0 else '▲'} {move.change:+z.1%}"


def _chart(series: Series, found: Sequence[Move], pinned: Mapping[str, str], quiet: Sequence[Move]) -> _Chart:
    points = [point for point in series.points if math.isfinite(point.value)]
    scale = _scale(points)
    step = (_RIGHT - _LEFT) / max(len(points) - 1, 1)
    places = {
        id(point): round(_LEFT + 4 + number * (step - 4 / max(len(points), 1)), 1)
        for number, point in enumerate(points)
    }
    own = [move for move in found if move.series is series]
    seen = [move for move in quiet if move.series is series]
    last = points[-1] if points else None
    latest = f"latest {value_in_words(last.value, series.unit)}" if last else "never measured"
    return _Chart(
        measurand=series.measurand,
        latest=latest,
        alternative=f"{series.measurand} of {len(points)} runs, {latest}. "
        + ("; ".join(move.sentence for move in own) or "It did not move") + ".",
        ticks=[(scale.y(value), _bare(value, series.unit)) for value in round_values(scale.low, scale.high, 4)],
        bands=[
            _band(move, places[id(move.before)], places[id(move.after)], quiet=move in seen) for move in (*own, *seen)
        ],
        intervals="".join(
            f"M{places[id(one)]} {scale.y(one.lower)}V{scale.y(one.upper)}"
            for one in points if one.lower is not None and one.upper is not None
        ),
        marks=[
            _Mark(
                places[id(one)], scale.y(one.value), one.verdict, _lines(one, series, pinned), one.digest in pinned
            )
            for one in points
        ],
        level=_level(points, places, scale, pinned, series.unit),
        builds=[(places[id(one)], name) for one, name in _named(points)],
        scale=0.8 if len(points) <= _CROWD else 0.5,
        first=day(points[0]) if points else "",
        last=day(points[-1]) if len(points) > 1 else "",
    )  # fmt: skip


def _scale(points: Sequence[Point]) -> _Scale:
    """All that counts lies within it but for what stands alone; what was left out has no say."""
    counted = [one for one in points if one.verdict not in LEFT_OUT] or list(points)
    if not counted:
        return _Scale(0.0, 1.0)
    ends = [one.value if end is None else end for one in counted for end in (one.lower, one.upper)]
    low, middle, high = (float(one) for one in np.quantile(ends, (_ALONE, 0.5, 1 - _ALONE)))
    room = _ROOM * (high - low)
    low, high = min(low - room, middle * (1 - _FLATTEST)), max(high + room, middle * (1 + _FLATTEST))
    return _Scale(low, high) if low < high else _Scale(low, low + 1.0)


def _band(move: Move, before: float, after: float, *, quiet: bool) -> _Band:
    middle = (before + after) / 2
    anchor = "start" if middle < _LEFT + 30 else "end" if middle > _RIGHT - 30 else "middle"
    tone: Literal["worse", "better", "quiet"] = "quiet" if quiet else "worse" if move.worse else "better"
    return _Band(before, round(max(after - before, 1.5), 1), round(middle, 1), anchor, _arrow(move), tone)


def _level(
    points: Sequence[Point], places: Mapping[int, float], scale: _Scale, pinned: Mapping[str, str], unit: str
) -> _Level | None:
    """The level of the newest build that is pinned, else of the newest one that was compared with none."""
    chosen = [one for one in points if one.digest in pinned] or [
        one for one in points if one.verdict is Verdict.NO_BASELINE and one.counts
    ]
    if not chosen:
        return None
    one = chosen[-1]
    return _Level(places[id(one)], scale.y(one.value), f"baseline {one.build}, {day(one)}: {_value(one, unit)}")


def _named(points: Sequence[Point]) -> Iterator[tuple[Point, str]]:
    """Builds at equal distances, the newest among them, each without what all have in common; one that is all, once."""
    step = max(1, math.ceil(len(points) / _BUILDS))
    names = {one.build for one in points}
    letters = itertools.takewhile(lambda each: len(set(each)) == 1, zip(*names, strict=False))
    shared = "".join(each[0] for each in letters) if len(names) > 1 else ""
    begins = len(shared) - len(re.split(r"[^A-Za-z0-9.]", shared)[-1])
    for number, one in enumerate(reversed(points)):
        if number % step == 0 and (len(names) > 1 or not number):
            name = one.build[begins:].partition(" (")[0]  # without the release of a package
            yield one, name if len(name) <= _BUILD else f"…{name[1 - _BUILD :]}"


def _lines(one: Point, series: Series, pinned: Mapping[str, str]) -> list[str]:
    """Words for a point: its build, when it was measured, its value, and the verdict of its run."""
    told = [cut(one.build, 60), f"{day(one)}: {_value(one, series.unit)}", str(one.verdict)]
    return told + ([f"baseline {pinned[one.digest]}"] if one.digest in pinned else [])


def _value(point: Point, unit: str) -> str:
    told = value_in_words(point.value, unit)
    if point.lower is None or point.upper is None:
        return told
    lower, upper = (value_in_words(one, unit) for one in (point.lower, point.upper))
    return f"{told} ({lower.removesuffix(unit).rstrip()} to {upper.removesuffix(unit).rstrip()})"


def _bare(value: float, unit: str) -> str:
    """A value without its unit: at an axis it would take too much room."""
    return value_in_words(value, unit).removesuffix(f" {unit}")
