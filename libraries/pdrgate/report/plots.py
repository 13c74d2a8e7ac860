"""What was measured, as pictures: the load-loss curve, the rates, the search and the repeats, each as PNG bytes.

matplotlib is used by its objects only (no pyplot, no global state) and imported when a picture is drawn. Header,
legend and axes are placed in pixels and texts are measured, so nothing can lie on something else.
"""

from __future__ import annotations

import io
import itertools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

from pdrgate.stability import Assessment, Label, LoadPoint, Repeats, Verdict
from pdrgate.stats.intervals import mean
from pdrgate.trial import Trial
from pdrgate.units import Duration, Rate, Ratio

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.text import Text
    from matplotlib.ticker import FuncFormatter

_T = TypeVar("_T")

PLR_FLOOR = 1e-6
"""Bottom of the loss scale (section IV-B): no measurement of reasonable length can tell a smaller PLR from 0."""

_WIDTH, _HEIGHT, _DPI = 1100, 704, 110
_EDGE = 20
_LEFT, _RIGHT = 96, 92
_GOAL_MARGIN = 210
_MARK_LINE, _BESIDE_LINE, _ROW_GAP = 19, 42, 9

_INK, _FAINT, _GRID = "#1f2328", "#59636e", "#e3e7ec"
_BLUE, _RED = "#0057b8", "#c8102e"
_GREEN, _ORANGE, _VERMILION, _PURPLE, _SKY = "#00795a", "#e69f00", "#d55e00", "#8f4a86", "#56b4e9"
_PDR, _PDR_TEXT = "#b27b00", "#7d5600"
_LOOKED_AT = "#eef4fb"
_SATURATED, _NOT_SATURATED = "#d3e8dd", "#fbdccb"
_VERDICT_COLOURS = {
    Verdict.STABLE: _GREEN,
    Verdict.UNSTABLE: "#b3261e",
    Verdict.INCONCLUSIVE: "#8a6100",
    Verdict.GENERATOR_LIMITED: "#5b5f97",
}
_GOAL_COLOURS = (_BLUE, _PURPLE, _INK, _GREEN)
_MEAN: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 6.5, "color": _BLUE, "zorder": 5}
_LIMIT: dict[str, Any] = {"color": _INK, "linestyle": (0, (5, 3)), "linewidth": 1.0, "zorder": 1.5}

_LOSS_LIMITS = (PLR_FLOOR * 0.65, 1.3)
_GENERATOR_LIMITED = "generator-limited: too high"
_PARTS = 4
_MOST_PANELS = 20
_LEAST_CHANGE = 0.5
"""A panel of repeats shows at least this much up and down, per cent, lest noise look like drama."""
_LOG_FROM = 20.0
"""Loads of a search that differ by more than this factor get a log scale."""


@dataclass(frozen=True, slots=True)
class GoalLine:
    """A goal of a search and the relevant bounds that it ended with, packets/s; None where there is none."""

    name: str
    loss_ratio: float
    lower: float | None
    upper: float | None


def load_loss(assessment: Assessment, *, title: str, subtitle: str = "") -> bytes:
    """PASTRAMI's load-loss curve (Fig. 6) with its ΔUCL95, the PDR and where saturation was looked for, as PNG.

    Between loads the curve is linear in PLR, as the PDR is interpolated, so it crosses the threshold at the PDR.
    """
    return _png(_load_loss_figure(assessment, title, subtitle))


def rates(assessment: Assessment, *, title: str, subtitle: str = "") -> bytes:
    """Forwarding rate and delivery ratio against offered load, with the TIR of each step, as PNG."""
    return _png(_rates_figure(assessment, title, subtitle))


def search_path(trials: Sequence[Trial], *, title: str, goals: Sequence[GoalLine], subtitle: str = "") -> bytes:
    """The search as it went: every trial's load in measured order, and how each goal's bounds closed in, as PNG.

    A bound's path is drawn only where ``bounds_so_far`` ends at the bound that the search itself gave.
    """
    return _png(_search_path_figure(trials, title, goals, subtitle))


def repeats(assessment: Assessment, *, title: str) -> bytes:
    """Every repeat in measured order, a panel per load, so that drift and two modes are seen, as PNG."""
    return _png(_repeats_figure(assessment, title))


def bounds_so_far(trials: Iterable[Trial], loss_ratio: float) -> list[tuple[float | None, float | None]]:
    """The relevant lower and upper bound for a goal of ``loss_ratio`` after each trial, as far as trials tell it.

    A load counts as too high when its longest trials so far exceeded the goal for more than half of their time (the
    usual exceed ratio, RFC 9971); a generator-limited trial counts as exceeding. The relevant upper bound is the
    lowest such load, the relevant lower bound the highest other load below it.
    """
    seen: dict[float, tuple[float, float, float]] = {}
    path: list[tuple[float | None, float | None]] = []
    for trial in trials:
        length, good, bad = seen.get(trial.intended_load, (0.0, 0.0, 0.0))
        if trial.intended_duration > length:
            length, good, bad = trial.intended_duration, 0.0, 0.0
        if trial.intended_duration == length:
            if trial.generator_limited or trial.loss_ratio > loss_ratio:
                bad += length
            else:
                good += length
        seen[trial.intended_load] = (length, good, bad)
        upper = min((load for load, (_, fine, broke) in seen.items() if broke > fine), default=None)
        lower = max(
            (load for load, (_, fine, broke) in seen.items() if broke <= fine and (upper is None or load < upper)),
            default=None,
        )
        path.append((lower, upper))
    return path


# --- the pictures -----------------------------------------------------------------------------------------------------


def _load_loss_figure(found: Assessment, title: str, subtitle: str) -> Figure:
    page = _Page()
    page.header(title, subtitle, found)
    points = found.curve.points
    repeated = any(point.runs > 1 for point in points)
    back = page.axes()  # the ΔUCL95 scale and what marks regions; the PLR lies on top of both
    front = page.axes(above=back)
    for axes in (back, front):
        _load_axis(axes, found)
    handles: list[Artist] = []

    if points:
        xs, ys = _interpolated([point.load for point in points], [point.plr for point in points])
        front.plot(xs, _floored(ys), color=_BLUE, linewidth=1.2, zorder=3)
    for point in points:
        if point.lcl is not None and point.ucl is not None:
            limits = _floored([point.lcl, point.ucl])
            front.plot([point.load] * 2, limits, color=_BLUE, linewidth=1.5, marker="_", markersize=9, zorder=3)
    above = [point for point in points if point.plr > PLR_FLOOR]
    floor = [point for point in points if point.plr <= PLR_FLOOR]
    if above:
        handles += front.plot(
            [point.load for point in above],
            [point.plr for point in above],
            label="mean PLR, 95 % interval" if repeated else "PLR (one run per load: no interval)",
            **_MEAN,
        )
    if floor:
        handles += front.plot(
            [point.load for point in floor],
            [PLR_FLOOR] * len(floor),
            label=f"{'mean ' * repeated}PLR 0 or below {_power(PLR_FLOOR)}, drawn there",
            **{**_MEAN, "markerfacecolor": "white"},
        )
    if repeated:
        dots = [(point.load, loss) for point in points for loss in point.losses]
        handles += front.plot(
            [load for load, _ in dots],
            _floored([loss for _, loss in dots]),
            label="PLR of each repeat",
            **_dots(points),
        )
    handles += _uncertainty(back, points)
    handles.append(
        front.axhline(max(found.plr_threshold, PLR_FLOOR), label=f"PLR {Ratio(found.plr_threshold)}", **_LIMIT)
    )
    handles += _mark_pdr(back, front, found)
    handles += _mark_saturation(back, found)
    handles += _limited(front, found)
    any_at_floor = any(loss <= PLR_FLOOR for point in points for loss in point.losses)
    _loss_scale(front, back, found.plr_threshold, floor_used=any_at_floor)
    page.place([(1.0, [back, front])], handles, _load_labels(found))
    _empty(page, front, found)
    return page.figure


def _loss_scale(axes: Axes, back: Axes, threshold: float, *, floor_used: bool) -> None:
    """Decades from the floor to 1, and the threshold in per cent; a decade it would touch gives way.

    Their grid lines go to ``back``, so that they lie below everything.
    """
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    threshold = max(threshold, PLR_FLOOR)
    lowest = round(math.log10(PLR_FLOOR))
    names = {10.0**power: _power(10.0**power) for power in range(lowest, 1)}
    if floor_used:
        names[PLR_FLOOR] = f"≤ {_power(PLR_FLOOR)}"
    names = {mark: name for mark, name in names.items() if abs(math.log10(mark / threshold)) > 0.25}
    names[threshold] = str(Ratio(threshold))
    marks = sorted(names)
    axes.set_yscale("log")
    axes.set_ylim(*_LOSS_LIMITS)
    for mark in marks:
        height = _loss_height(mark)
        back.plot([0, 1], [height, height], transform=back.transAxes, color=_GRID, linewidth=0.7, zorder=0.5)
    axes.yaxis.set_major_locator(FixedLocator(marks))
    axes.yaxis.set_major_formatter(FixedFormatter([names[mark] for mark in marks]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel("packet loss ratio (PLR)", color=_BLUE)
    axes.tick_params(axis="y", labelcolor=_BLUE)


def _uncertainty(axes: Axes, points: Sequence[LoadPoint]) -> list[Line2D]:
    """ΔUCL95 on ``axes``' own scale, with a gap where there is none; no scale when there is none at all."""
    known = [point.delta_ucl for point in points if point.delta_ucl is not None]
    axes.yaxis.set_visible(bool(known))
    if not known:
        axes.set_ylim(0, 1)
        return []
    high, floor = max(0.1, 1.12 * max(known)), _loss_height(PLR_FLOOR)
    axes.set_ylim(-high * floor / (1 - floor), high)  # its 0 is level with the floor of the PLR
    axes.yaxis.tick_right()
    axes.yaxis.set_label_position("right")
    axes.spines["right"].set_visible(True)
    axes.set_ylabel("ΔUCL95 = (UCL95 − PLR) / PLR", color=_RED)
    axes.tick_params(axis="y", labelcolor=_RED)
    return axes.plot(
        [point.load for point in points],
        [math.nan if point.delta_ucl is None else point.delta_ucl for point in points],
        color=_RED,
        linewidth=1.2,
        linestyle=(0, (4, 2)),
        marker="s",
        markersize=4.5,
        zorder=2,
        label="normalised ΔUCL95 (right scale)",
    )


def _rates_figure(found: Assessment, title: str, subtitle: str) -> Figure:
    from matplotlib.ticker import MaxNLocator

    page = _Page()
    page.header(title, subtitle, found)
    points = found.curve.points
    repeated = any(point.runs > 1 for point in points)
    rate, strip, delivery = page.axes(), page.axes(), page.axes()
    handles: list[Artist] = []
    for axes in (rate, delivery):
        _load_axis(axes, found)
        axes.set_axisbelow(True)
        axes.grid(True, color=_GRID, linewidth=0.7)
    rate.tick_params(labelbottom=False)
    rate.set_xlabel("")

    ratios = [100 * (1 - loss) for point in points for loss in point.losses]
    ends = rate.get_xlim()
    handles += rate.plot(
        ends, ends, color=_FAINT, linestyle=(0, (5, 3)), linewidth=1.2, zorder=2, label="ideal, all forwarded: T = O"
    )
    if points:
        loads = [point.load for point in points]
        of_repeats = [point.load for point in points for _ in point.losses]
        throughputs = [value for point in points for value in point.throughputs]
        if repeated:
            rate.plot(of_repeats, throughputs, **_dots(points))
            delivery.plot(of_repeats, ratios, **{**_dots(points), "color": _PURPLE})
        handles += rate.plot(
            loads,
            [point.throughput for point in points],
            label="forwarding rate T" + ": mean, repeats" * repeated,
            **{**_MEAN, "linestyle": "-", "linewidth": 1.6},
        )
        handles += delivery.plot(
            loads,
            [100 * point.delivery_ratio for point in points],
            label="delivery ratio DR = 1 − PLR",
            **{**_MEAN, "linestyle": "-", "linewidth": 1.6, "color": _PURPLE, "marker": "D", "markersize": 5},
        )
        rate.set_ylim(*_span([*throughputs, *loads]))
    bound = 100 * (1 - found.plr_threshold)
    delivery.set_ylim(*_span([*ratios, bound, 100.0], least=0.2))
    handles.append(delivery.axhline(bound, label=f"DR {bound:.6g} %", **_LIMIT))
    handles += _mark_pdr(rate, rate, found)
    _mark_pdr(delivery, delivery, found)
    handles += _mark_saturation(rate, found)
    _mark_saturation(delivery, found)
    handles += _limited(rate, found)
    unit = _scale_loads(rate.yaxis, [*found.curve.loads, *found.curve.limited_loads])
    rate.set_ylabel(f"forwarding rate ({unit})", color=_BLUE)
    delivery.set_ylabel("delivery ratio (%)", color=_PURPLE)
    delivery.yaxis.set_major_locator(MaxNLocator(5))
    delivery.yaxis.set_major_formatter(_plain())
    page.place([(0.6, [rate]), (0.08, [strip]), (0.32, [delivery])], handles, _load_labels(found))
    _tir_strip(strip, found, ends)
    _empty(page, rate, found)
    return page.figure


def _tir_strip(axes: Axes, found: Assessment, ends: tuple[float, float]) -> None:
    """A cell per step between two loads with its TIR: how much of the added load came out as throughput."""
    axes.set_xlim(ends)
    axes.set_ylim(0, 1)
    axes.set_xticks([])
    axes.set_yticks([0.5], ["TIR\nper step"])
    axes.tick_params(axis="y", length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    points, saturation = found.curve.points, found.saturation
    cell = axes.get_window_extent()
    for index, ratio in enumerate(saturation.tir):
        if ratio is None:
            continue
        start, end = points[index - 1].load, points[index].load
        past = saturation.potential_index is not None and index >= saturation.potential_index
        lasting = saturation.actual_index is not None and index >= saturation.actual_index
        colour = _SATURATED if lasting else _NOT_SATURATED if past else "#eef1f4"
        axes.axvspan(start, end, facecolor=colour, edgecolor="white", linewidth=1.5)
        text = axes.text(
            (start + end) / 2,
            0.47,
            f"{round(ratio, 2) + 0.0:.2f}".replace("-", "−"),
            ha="center",
            va="center",
            fontsize=8.5,
            color=_INK,
        )
        room = (end - start) * cell.width / (ends[1] - ends[0]) - 4
        if text.get_window_extent().width > room:
            text.set(rotation=90, fontsize=6.5)
        extent = text.get_window_extent()
        if extent.width > room or extent.height > cell.height:
            text.remove()


def _search_path_figure(trials: Sequence[Trial], title: str, goals: Sequence[GoalLine], subtitle: str) -> Figure:
    page = _Page()
    page.header(title, subtitle, None)
    bounds = [bound for goal in goals for bound in (goal.lower, goal.upper) if bound is not None]
    loads = [*(trial.intended_load for trial in trials), *bounds]
    margin = _GOAL_MARGIN if goals else _RIGHT
    whole = page.axes()
    handles = _draw_search(whole, trials, goals, loads)
    close = _close_to(bounds, loads)
    if close is None:
        page.place([(1.0, [whole])], handles, [], right=margin)
        near = whole
    else:
        near = page.axes()
        _draw_search(near, trials, goals, loads)
        near.set_yscale("linear")
        near.set_ylim(*close)
        near.set_ylabel(f"close-up ({_scale_loads(near.yaxis, bounds)})")
        whole.tick_params(labelbottom=False)
        whole.set_xlabel("")
        page.place([(0.36, [whole]), (0.64, [near])], handles, [], right=margin)
    page.beside(near, [_goal_label(goal, colour) for goal, colour in _coloured(goals)])
    if not trials:
        whole.set_xticks([])
        whole.set_yticks([])
        page.say(whole, "no trials were measured")
    return page.figure


def _close_to(bounds: Sequence[float], loads: Sequence[float]) -> tuple[float, float] | None:
    """Limits of a close-up around ``bounds``; None when the whole picture shows them well enough."""
    if not bounds:
        return None
    room = 1.5 * (max(bounds) - min(bounds)) or 0.01 * max(bounds)
    low, high = min(bounds) - room, max(bounds) + room
    return (low, high) if 2.5 * (high - low) < max(loads) - min(loads) else None


def _draw_search(
    axes: Axes, trials: Sequence[Trial], goals: Sequence[GoalLine], loads: Sequence[float]
) -> list[Artist]:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    handles: list[Artist] = []
    longest = max((trial.intended_duration for trial in trials), default=0.0) or 1.0
    crowding = min(1.0, 60 / max(1, len(trials)))
    for name, marker, colour, members in _by_loss(trials, [goal.loss_ratio for goal in goals]):
        hollow = name == _GENERATOR_LIMITED
        look: dict[str, Any] = {
            "marker": marker,
            "facecolors": "none" if hollow else colour,
            "edgecolors": colour if hollow else "white",
            "linewidths": 1.4 if hollow else 0.7,
            "label": name,
        }
        axes.scatter(
            [number for number, _ in members],
            [trial.intended_load for _, trial in members],
            s=[crowding * _area(trial.intended_duration, longest) for _, trial in members],
            zorder=5,
            **look,
        )
        handles.append(axes.scatter([], [], s=55, **look))
    durations = sorted({trial.intended_duration for trial in trials})
    for duration in durations if len(durations) <= 3 else (durations[0], durations[-1]):
        size = crowding * _area(duration, longest)
        handles.append(axes.scatter([], [], s=size, color="#aab2bb", label=f"trial of {Duration(duration)}"))
    for goal, colour in _coloured(goals):
        handles += _goal_path(axes, trials, goal, colour)

    if loads and min(loads) > 0 and max(loads) / min(loads) > _LOG_FROM:
        axes.set_yscale("log")
    elif loads:
        axes.set_ylim(*_span(loads, least=max(loads) * 0.01))
    room = 0.015 * len(trials)
    axes.set_xlim(max(0.2, 0.5 - room), max(2.8, len(trials) + 0.5 + room))
    axes.xaxis.set_major_locator(MaxNLocator(12, integer=True))
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:.0f}" if value >= 1 and value.is_integer() else "")
    )
    axes.set_xlabel("trial number")
    axes.set_ylabel(f"intended load ({_scale_loads(axes.yaxis, loads)})")
    axes.grid(True, color=_GRID, linewidth=0.7)
    return handles


def _goal_path(axes: Axes, trials: Sequence[Trial], goal: GoalLine, colour: str) -> list[Line2D]:
    """How the bounds closed in, as steps, and the search's own bounds as lines through the whole picture."""
    path = bounds_so_far(trials, goal.loss_ratio)
    final = path[-1] if path else (None, None)
    handles: list[Line2D] = []
    for side, bound, style, name in ((0, goal.lower, "-", "lower"), (1, goal.upper, (0, (3, 2)), "upper")):
        if bound is not None:
            axes.axhline(bound, color=colour, linewidth=0.9, linestyle=style, alpha=0.55, zorder=2)
        if _same(final[side], bound):
            steps = [math.nan if (value := bounds[side]) is None else value for bounds in path]
            if not all(math.isnan(value) for value in steps):
                handles += axes.plot(
                    range(1, len(path) + 1),
                    steps,
                    drawstyle="steps-post",
                    color=colour,
                    linewidth=1.5,
                    linestyle=style,
                    zorder=3,
                    label=f"{_cut(_printable(goal.name), 20)}: {name} bound so far",
                )
    return handles


def _repeats_figure(found: Assessment, title: str) -> Figure:
    page = _Page()
    panels = _panels(found)
    left_out = len(found.curve.points) - sum(panel.load is not None for panel in panels)
    subtitle = "forwarding rate of each repeat in measured order, as its change from the median at that load"
    if left_out:
        subtitle += f"; {left_out} loads far from the PDR are left out"
    page.header(title, subtitle, found)
    handles: dict[str, Artist] = {}
    grid = page.grid(max(1, len(panels)))
    for axes, panel in zip(grid, panels, strict=False):
        for handle in _panel(axes, panel):
            handles.setdefault(str(handle.get_label()), handle)
    page.legend(list(handles.values()))
    if not panels:
        _empty(page, grid[0], found)
    return page.figure


@dataclass(frozen=True, slots=True)
class _Panel:
    """One series of repeats to draw."""

    name: str
    load: float | None
    values: tuple[float, ...]
    series: Repeats | None
    """The same series as the drift checks see it; None when they do not look at this load."""


def _panels(found: Assessment) -> list[_Panel]:
    """The PDR per repeat, if any, and the loads in order; of very many loads those nearest to the PDR."""
    decisive = {series.load: series for series in found.repeats}
    panels = []
    if None in decisive and decisive[None].values:
        panels.append(_Panel("PDR", None, decisive[None].values, decisive[None]))
    points = list(found.curve.points)
    room = _MOST_PANELS - len(panels)
    if len(points) > room:
        centre = found.pdr.load or found.pdr.bracket[0] or points[-1].load
        points = sorted(sorted(points, key=lambda point: abs(point.load - centre))[:room], key=lambda point: point.load)
    panels += [
        _Panel(str(Rate(point.load)), point.load, point.throughputs, decisive.get(point.load)) for point in points
    ]
    return panels


def _panel(axes: Axes, panel: _Panel) -> list[Artist]:
    """Draw one panel; the artists that its kind of mark needs in a legend."""
    from matplotlib.ticker import MaxNLocator

    middle = median(panel.values)
    changes = [100 * (value / middle - 1) if middle else 0.0 for value in panel.values]
    numbers = range(1, len(changes) + 1)
    handles: list[Artist] = []
    notes: list[str] = []
    axes.axhline(0, color=_FAINT, linewidth=0.7, zorder=1)
    axes.plot(numbers, changes, color=_BLUE, linewidth=0.7, alpha=0.35, zorder=2)
    handles += axes.plot(
        numbers, changes, linestyle="none", marker="o", markersize=2.8, color=_BLUE, zorder=3, label="a repeat"
    )
    for start, end in _parts(len(changes)):
        level = mean(changes[start:end])
        handles += axes.plot(
            [start + 0.7, end + 0.3], [level] * 2, color=_ORANGE, linewidth=2.4, zorder=4, label="mean of a quarter"
        )
    if panel.series is not None:
        axes.set_facecolor(_LOOKED_AT)
        handles.append(_patch("what the drift checks look at", _LOOKED_AT))
        if panel.series.trend is not None:
            trend = f"{_signed(panel.series.trend.change)} %, p {panel.series.trend.p_value:.1g}"
            notes = [f"trend {trend}", trend]
        modes = panel.series.modes
        if modes is not None and modes.significant and middle and panel.load is not None:
            notes = [f"{modes.low_count} low, {modes.high_count} high"]
            for mode in (modes.low, modes.high):
                level = 100 * (mode / middle - 1)
                look: dict[str, Any] = {"color": _VERMILION, "linestyle": (0, (1, 1)), "linewidth": 1.6, "zorder": 3.5}
                handles.append(axes.axhline(level, label="two modes", **look))
    name = axes.set_title(panel.name, loc="left", fontsize=9, fontweight="bold", color=_INK, pad=4)
    room = axes.get_window_extent().width - name.get_window_extent().width - 6
    for note in notes:
        if axes.set_title(note, loc="right", fontsize=8, color=_FAINT, pad=4).get_window_extent().width <= room:
            break
    else:
        axes.set_title("", loc="right")
    runs = len(changes)
    axes.set_xlim(0.7 - 0.04 * runs, runs + 0.3 + 0.04 * runs)
    low, high = min([*changes, -_LEAST_CHANGE]), max([*changes, _LEAST_CHANGE])
    axes.set_ylim(low - 0.08 * (high - low), high + 0.08 * (high - low))
    axes.set_xticks(sorted({1, (runs + 1) // 2, runs}))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:+.3g}".replace("-", "−") if value else "0")
    axes.tick_params(labelsize=8)
    return handles


def _parts(runs: int) -> list[tuple[int, int]]:
    """The consecutive quarters of so many repeats; none of fewer than two repeats each."""
    if runs < 2 * _PARTS:
        return []
    return list(itertools.pairwise(round(part * runs / _PARTS) for part in range(_PARTS + 1)))


# --- what the pictures share ------------------------------------------------------------------------------------------


def _load_axis(axes: Axes, found: Assessment) -> None:
    loads = [*found.curve.loads, *found.curve.limited_loads]
    low, high = min(loads), max(loads)
    room = 0.04 * (high - low) or 0.1 * high
    axes.set_xlim(low - room, high + room)
    unit = _scale_loads(axes.xaxis, loads)
    axes.set_xlabel(f"offered load ({unit})")


def _mark_saturation(axes: Axes, found: Assessment) -> list[Artist]:
    """Shade from the potential saturation point on, in another colour from where the saturation that lasts begins."""
    loads, potential, actual = found.curve.loads, found.saturation.potential_index, found.saturation.actual_index
    if potential is None:
        return []
    end = axes.get_xlim()[1]
    begin = end if actual is None else loads[actual]
    axes.axvline(loads[potential], color=_INK, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)
    handles: list[Artist] = []
    if begin > loads[potential]:
        label = "saturation expected, absent or passing"
        axes.axvspan(loads[potential], begin, facecolor=_NOT_SATURATED, alpha=0.55, linewidth=0, zorder=0, label=label)
        handles.append(_patch(label, _NOT_SATURATED))
    if actual is not None:
        label = "saturated"
        axes.axvspan(loads[actual], end, facecolor=_SATURATED, alpha=0.65, linewidth=0, zorder=0, label=label)
        handles.append(_patch(label, _SATURATED))
    return handles


def _mark_pdr(back: Axes, front: Axes, found: Assessment) -> list[Artist]:
    """The PDR as a line and its interval as a band; what of them needs a legend. No band without a PDR."""
    low, high = back.get_xlim()
    pdr = found.pdr
    if pdr.load is None:
        return []
    handles: list[Artist] = [front.axvline(pdr.load, color=_PDR, linewidth=1.6, zorder=2, label="PDR")]
    if pdr.lower is not None or pdr.upper is not None:
        ends = (low if pdr.lower is None else pdr.lower, high if pdr.upper is None else pdr.upper)
        band = back.axvspan(*ends, facecolor=_PDR, alpha=0.22, linewidth=0, zorder=0.3, label="PDR, 95 % interval")
        handles.append(band)
    return handles


def _load_labels(found: Assessment) -> list[_Mark]:
    """What is written above the axes: where the PDR is, and where saturation was expected and found."""
    pdr, curve, saturation = found.pdr, found.curve, found.saturation
    name = f"PDR at PLR {Ratio(found.plr_threshold)}"
    known = pdr.lower is not None or pdr.upper is not None
    interval = f"95 % interval {_interval(pdr.lower, pdr.upper)}" if known else "no interval"
    low, high = pdr.bracket
    if pdr.load is not None:
        text = f"{name}: {Rate(pdr.load)}, {interval}"
    elif low is not None or high is not None:
        where = f"> {Rate(low)}" if low is not None else f"< {Rate(high or 0.0)}"
        text = f"{name}: {where}, outside the measured loads" + f"; {interval}" * known
    else:
        text = f"{name}: unknown"
    marks = [_Mark(pdr.load or low or high or 0.0, text, _PDR_TEXT)]
    if saturation.potential_index is None:
        return [*marks, _Mark(curve.loads[-1] if curve.points else 0.0, "no potential saturation point", _FAINT)]
    potential = curve.loads[saturation.potential_index]
    if saturation.actual_index is None:
        text = f"potential saturation at {Rate(potential)}, but the last step is not saturated"
    elif saturation.actual_index == saturation.potential_index:
        text = f"saturated from {Rate(potential)} on"
    else:
        actual = curve.loads[saturation.actual_index]
        text = f"potential saturation at {Rate(potential)}, but saturated only from {Rate(actual)}"
    return [*marks, _Mark(potential, text, _INK)]


def _limited(axes: Axes, found: Assessment) -> list[Line2D]:
    """Loads that are no points because the generator limited every trial, as crosses on the axis."""
    loads = found.curve.limited_loads
    if not loads:
        return []
    return axes.plot(
        loads,
        [0.025] * len(loads),
        transform=axes.get_xaxis_transform(),
        linestyle="none",
        marker="x",
        markersize=7,
        markeredgewidth=1.8,
        color=_FAINT,
        zorder=6,
        label="load where every trial was generator-limited",
    )


def _empty(page: _Page, axes: Axes, found: Assessment) -> None:
    if not found.curve.points:
        page.say(axes, "every trial was generator-limited: there is no curve")


def _by_loss(trials: Sequence[Trial], goals: Sequence[float]) -> list[tuple[str, str, str, list[tuple[int, Trial]]]]:
    """Name, marker, colour and numbered trials of each class of loss that occurs, generator-limited ones apart."""
    limits = sorted({ratio for ratio in goals if ratio > 0})
    names = ["no loss", *(f"loss ≤ {Ratio(limit)}" for limit in limits)]
    names += [f"loss > {Ratio(limits[-1])}" if limits else "loss", _GENERATOR_LIMITED]
    between = _cycled((("s", _ORANGE), ("D", _SKY), ("p", _PURPLE)), len(limits))
    looks = [("o", _GREEN), *between, ("^", _VERMILION), ("X", _FAINT)]
    members: list[list[tuple[int, Trial]]] = [[] for _ in names]
    for number, trial in enumerate(trials, 1):
        if trial.generator_limited:
            group = len(names) - 1
        elif trial.loss_ratio == 0:
            group = 0
        else:
            group = 1 + sum(trial.loss_ratio > limit for limit in limits)
        members[group].append((number, trial))
    rows = zip(names, looks, members, strict=True)
    return [(name, marker, colour, group) for name, (marker, colour), group in rows if group]


def _coloured(goals: Sequence[GoalLine]) -> list[tuple[GoalLine, str]]:
    return list(zip(goals, _cycled(_GOAL_COLOURS, len(goals)), strict=True))


def _goal_label(goal: GoalLine, colour: str) -> _Mark:
    known = [bound for bound in (goal.lower, goal.upper) if bound is not None]
    bounds = _interval(goal.lower, goal.upper) if known else "no bounds"
    asked = f"loss ≤ {Ratio(goal.loss_ratio)}" if goal.loss_ratio > 0 else "no loss"
    return _Mark(mean(known) if known else math.nan, f"{goal.name}: {asked}\n{bounds}", colour)


@dataclass(frozen=True, slots=True)
class _Mark:
    """A text that belongs to a place on an axis."""

    at: float
    text: str
    colour: str


class _Page:
    """A picture of fixed size: a header, axes, and a legend below them, none of which can lie on another."""

    def __init__(self) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.figure = Figure(figsize=(_WIDTH / _DPI, _HEIGHT / _DPI), dpi=_DPI, facecolor="white")
        FigureCanvasAgg(self.figure)
        self._top = float(_HEIGHT - _EDGE)

    def axes(self, above: Axes | None = None) -> Axes:
        """New axes, placed later; with ``above``, over those and see-through."""
        axes = self.figure.add_axes((0.0, 0.0, 1.0, 1.0), label=str(len(self.figure.axes)))
        if above is not None:
            axes.patch.set_visible(False)
            axes.set_zorder(above.get_zorder() + 1)
            axes.xaxis.set_visible(False)
        for side, spine in axes.spines.items():
            spine.set_color("#8c959f")
            spine.set_visible(side in ("left", "bottom") and above is None)
        axes.tick_params(colors=_INK, labelsize=9.5, color="#8c959f")
        axes.xaxis.label.set(color=_INK, fontsize=10.5)
        axes.yaxis.label.set(color=_INK, fontsize=10.5)
        return axes

    def header(self, title: str, subtitle: str, found: Assessment | None) -> None:
        """Title, subtitle and, for an assessment, its verdict and label as badges and its reason as a sentence."""
        right = float(_WIDTH - _EDGE)
        if found is not None:
            colour = _VERDICT_COLOURS[found.verdict]
            right = self._badge(right, found.verdict.value.replace("_", " "), "white", colour) - 8
            label = found.labels[found.reading]
            shade = _GREEN if label is Label.GOOD else _VERDICT_COLOURS[Verdict.UNSTABLE]
            right = self._badge(right, f"{label} ({found.reading} reading)", shade, "white", edge=shade) - 16
        self._line(title or "untitled", 15, _INK, right, weight="bold")
        if subtitle:
            self._line(subtitle, 10.5, _FAINT, _WIDTH - _EDGE)
        if found is not None and found.reason:
            colour = _VERDICT_COLOURS[found.verdict]
            for line in self._wrapped(f"{found.verdict}: {found.reason}", 10.5, _WIDTH - 2 * _EDGE):
                self._line(line, 10.5, colour, _WIDTH - _EDGE)
        self._top -= 6

    def _badge(self, right: float, text: str, colour: str, fill: str, edge: str | None = None) -> float:
        """A badge on the title's line that ends at ``right``; where it begins."""
        found = self._text(right - 8, self._top - 11, text, 10.5, colour, weight="bold", ha="right", va="center")
        found.set_bbox({"boxstyle": "round,pad=0.35", "facecolor": fill, "edgecolor": edge or fill, "linewidth": 1.4})
        return float(found.get_window_extent().x0) - 8

    def _line(self, text: str, size: float, colour: str, right: float, weight: str = "normal") -> None:
        found = self._text(_EDGE, self._top, text, size, colour, weight=weight, va="top")
        self._fit(found, right - _EDGE, size)
        self._top -= size * _DPI / 72 * 1.32

    def _text(
        self, x: float, y: float, text: str, size: float, colour: str, *, weight: str = "normal",
        ha: str = "left", va: str = "baseline",
    ) -> Text:  # fmt: skip
        return self.figure.text(
            x / _WIDTH, y / _HEIGHT, _printable(text), fontsize=size, color=colour, fontweight=weight, ha=ha, va=va,
            parse_math=False,
        )  # fmt: skip

    @staticmethod
    def _fit(text: Text, width: float, size: float) -> None:
        """Shrink a little, then cut the lines, until ``text``, printed in ``size``, is no wider than ``width``."""
        for share in (1.0, 0.95, 0.9, 0.85, 0.8):
            text.set_fontsize(share * size)
            if text.get_window_extent().width <= width:
                return
        lines = text.get_text().split("\n")
        fits, fails = 0, max(map(len, lines))  # the longest start of the lines that fits, by halving
        while fails - fits > 1:
            half = (fits + fails) // 2
            text.set_text("\n".join(_cut(line, half) for line in lines))
            fits, fails = (half, fails) if text.get_window_extent().width <= width else (fits, half)
        text.set_text("\n".join(_cut(line, fits) for line in lines))

    def _wrapped(self, text: str, size: float, width: float) -> list[str]:
        """One line if a little smaller print fits, else two that are about as long."""
        probe = self._text(0, 0, text, 0.9 * size, _INK)
        fits = probe.get_window_extent().width <= width
        probe.remove()
        words = re.sub(r"(?<=\d) (?=%|[kMG]?pps)", "\N{NO-BREAK SPACE}", text).split(" ")
        if fits or len(words) < 2:
            return [text]
        splits = ((" ".join(words[:first]), " ".join(words[first:])) for first in range(1, len(words)))
        return list(min(splits, key=lambda lines: max(map(len, lines))))

    def legend(self, handles: Sequence[Artist]) -> float:
        """A legend at the bottom, as many columns as fit; the height it needs."""
        from matplotlib.lines import Line2D

        if not handles:
            return 0.0
        for columns in range(min(len(handles), 6), 0, -1):
            legend = self.figure.legend(
                handles=list(handles), loc="lower center", bbox_to_anchor=(0.5, 8 / _HEIGHT), ncols=columns,
                frameon=False, fontsize=9.5, labelcolor=_INK, borderpad=0, borderaxespad=0, columnspacing=1.8,
                handletextpad=0.6,
            )  # fmt: skip
            for text in legend.get_texts():
                text.set_parse_math(False)
            for handle in legend.legend_handles:
                if isinstance(handle, Line2D) and handle.get_marker() == ".":
                    handle.set(alpha=0.7)  # a single faint dot would not be seen
            extent = legend.get_window_extent()
            if extent.width <= _WIDTH - 2 * _EDGE or columns == 1:
                break
            legend.remove()
        return float(extent.height)

    def place(
        self, rows: Sequence[tuple[float, Sequence[Axes]]], handles: Sequence[Artist], marks: Sequence[_Mark],
        right: float | None = None,
    ) -> None:  # fmt: skip
        """Stack ``rows`` (share of the height, axes on one another) between header and legend, ``marks`` above."""
        low = 8 + self.legend(handles) + 56
        left, width = _LEFT, _WIDTH - _LEFT - (_RIGHT if right is None else right)
        top = self._top - _MARK_LINE * len(marks)
        usable = top - low - _ROW_GAP * (len(rows) - 1)
        y = top
        for share, members in rows:
            y -= share * usable
            for axes in members:
                axes.set_position((left / _WIDTH, y / _HEIGHT, width / _WIDTH, share * usable / _HEIGHT))
                on_the_right = axes.spines["right"].get_visible()
                axes.yaxis.set_label_coords(1 + 70 / width if on_the_right else -66 / width, 0.5)
            y -= _ROW_GAP
        for line, mark in enumerate(marks):
            start, end = rows[0][1][0].get_xlim()
            x = left + width * min(1.0, max(0.0, (mark.at - start) / (end - start)))
            text = self._text(x, top + 7 + _MARK_LINE * line, mark.text, 9.5, mark.colour, weight="bold", ha="center")
            self._fit(text, _WIDTH - 2 * _EDGE, 9.5)
            extent = text.get_window_extent()
            room = left if extent.width <= width else _EDGE
            x += max(0.0, room - extent.x0) - max(0.0, extent.x1 - (_WIDTH - room))
            text.set_x(x / _WIDTH)

    def beside(self, axes: Axes, marks: Sequence[_Mark]) -> None:
        """Write ``marks`` right of ``axes``, each at its height, pushed apart where they would touch."""
        box = axes.get_window_extent()
        spaced: list[tuple[float, _Mark]] = []
        for mark in marks:
            height = (box.y0 + box.y1) / 2 if math.isnan(mark.at) else axes.transData.transform((0, mark.at))[1]
            spaced.append((float(height), mark))
        spaced.sort(key=lambda item: item[0])
        y = -math.inf
        placed = []
        for height, mark in spaced:
            y = max(height, y + _BESIDE_LINE)
            placed.append((y, mark))
        too_high = max(0.0, y - (box.y1 - 0.4 * _BESIDE_LINE)) if placed else 0.0
        for height, mark in placed:
            text = self._text(box.x1 + 12, height - too_high, mark.text, 9.5, mark.colour, weight="bold", va="center")
            text.set_linespacing(1.35)
            self._fit(text, _WIDTH - box.x1 - 12 - 8, 9.5)

    def grid(self, panels: int) -> list[Axes]:
        """Axes for ``panels`` small pictures, with one label for all at the left and one below."""
        columns = next(count for count in (1, 2, 3, 4, 5) if count * count >= panels or count == 5)
        rows = math.ceil(panels / columns)
        top, low, left, right = self._top + 18, 90, _EDGE + 66, _WIDTH - _EDGE
        height, width = (top - low) / rows, (right - left + 46) / columns
        grid = []
        for index in range(panels):
            row, column = divmod(index, columns)
            axes = self.axes()
            x, y = left + column * width, top - (row + 1) * height
            axes.set_position((x / _WIDTH, y / _HEIGHT, (width - 46) / _WIDTH, (height - 48) / _HEIGHT))
            grid.append(axes)
        middle = (low + top - 48) / 2
        side = self._text(_EDGE + 6, middle, "change from the median (%)", 10.5, _INK, ha="center", va="center")
        side.set_rotation(90)
        self._text((left + right) / 2, low - 44, "repeat, in measured order", 10.5, _INK, ha="center")
        return grid

    def say(self, axes: Axes, text: str) -> None:
        """A sentence in the middle of empty axes."""
        said = axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=12, color=_FAINT)
        said.set_bbox({"boxstyle": "round,pad=0.6", "facecolor": "white", "edgecolor": "none"})


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi="figure", bbox_inches=None, metadata={"Software": "pdrgate"})
    return buffer.getvalue()


def _printable(text: str) -> str:
    """``text`` with what the font cannot draw, and controls other than a new line, as a box or a space."""
    from matplotlib import font_manager

    font = font_manager.get_font(font_manager.findfont("DejaVu Sans"))
    known = font.get_charmap()
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join("".join(char if ord(char) in known else "□" for char in line) for line in lines)


def _cut(line: str, length: int) -> str:
    return line if len(line) <= length else line[:length].rstrip() + "…"


def _floored(ratios: Iterable[float]) -> list[float]:
    """Loss ratios for a log scale: those below the floor at the floor."""
    return [max(PLR_FLOOR, ratio) for ratio in ratios]


def _loss_height(ratio: float) -> float:
    """Where a loss ratio lies on the loss scale, 0 at its bottom and 1 at its top."""
    low, high = map(math.log10, _LOSS_LIMITS)
    return (math.log10(ratio) - low) / (high - low)


def _power(value: float) -> str:
    exponent = round(math.log10(value))
    return "1" if exponent == 0 else "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _interpolated(xs: Sequence[float], ys: Sequence[float], parts: int = 48) -> tuple[list[float], list[float]]:
    """Points on the straight lines between the given ones, close enough to look smooth on a log scale.

    They are denser at both ends of a line, where a log scale bends it most.
    """
    shares = [0.5 - 0.5 * math.cos(math.pi * part / parts) for part in range(parts)]
    dense_x, dense_y = [], []
    for (x0, x1), (y0, y1) in zip(itertools.pairwise(xs), itertools.pairwise(ys), strict=True):
        dense_x += [x0 + share * (x1 - x0) for share in shares]
        dense_y += [y0 + share * (y1 - y0) for share in shares]
    return [*dense_x, xs[-1]], [*dense_y, ys[-1]]


def _dots(points: Sequence[LoadPoint]) -> dict[str, Any]:
    few = max(point.runs for point in points) <= 10
    return {
        "linestyle": "none",
        "marker": ".",
        "markersize": 6,
        "markeredgewidth": 0,
        "color": _BLUE,
        "alpha": 0.5 if few else 0.25,
        "zorder": 2.5,
    }


def _span(values: Sequence[float], least: float = 0.0) -> tuple[float, float]:
    """Limits with some room around ``values``, not less than ``least`` apart."""
    low, high = min(values), max(values)
    room = max(0.06 * (high - low), (least - (high - low)) / 2) or 0.1 * abs(high) or 1.0
    return low - room, high + room


def _scale_loads(axis: Axis, loads: Sequence[float]) -> str:
    """Write the numbers of ``axis``, packets/s, in the unit that suits ``loads``; its name."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    factor, unit = _unit(max(loads, default=0.0))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / factor:.10g}"))
    if isinstance(axis.get_major_locator(), LogLocator):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_minor_formatter(FuncFormatter(lambda *_: ""))
    return unit


def _unit(rate: float) -> tuple[float, str]:
    return next(((factor, unit) for factor, unit in ((1e6, "Mpps"), (1e3, "kpps")) if rate >= factor), (1.0, "pps"))


def _interval(lower: float | None, upper: float | None) -> str:
    """`700 to 709.5 kpps`, with as many digits as it takes to tell the ends apart; one end at least is known."""
    if lower is None or upper is None:
        return f"from {Rate(lower)} up" if lower is not None else f"up to {Rate(upper or 0.0)}"
    factor, unit = _unit(upper)
    for digits in (4, 6, 8):
        low, high = (f"{bound / factor:.{digits}g}" for bound in (lower, upper))
        if low != high:
            break
    return f"{low} to {high} {unit}"


def _plain() -> FuncFormatter:
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: f"{value:.10g}")


def _signed(change: float) -> str:
    """A change in per cent, without the sign for it."""
    return f"{100 * change:+.2f}".replace("-", "−")


def _patch(label: str, colour: str) -> Artist:
    from matplotlib.patches import Patch

    return Patch(facecolor=colour, edgecolor="#8c959f", linewidth=0.6, label=label)


def _area(duration: float, longest: float) -> float:
    """Area of a trial's marker, points²: the longest trial's is largest, the shortest's still seen."""
    return 22.0 + 58.0 * math.sqrt(duration / longest)


def _cycled(values: Sequence[_T], count: int) -> list[_T]:
    return list(itertools.islice(itertools.cycle(values), count))


def _same(derived: float | None, given: float | None) -> bool:
    if derived is None or given is None:
        return derived is given
    return math.isclose(derived, given, rel_tol=1e-6)
