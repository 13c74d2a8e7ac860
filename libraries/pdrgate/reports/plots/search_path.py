"""The search as it went."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import cycle, islice

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pdrgate.record.trial import Trial
from pdrgate.reports.plots.page import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    legend,
    page,
    styled,
)
from pdrgate.reports.plots.scales import interval, rate_axis
from pdrgate.results.model import GoalResult
from pdrgate.search.goals import known_bounds
from pdrgate.values.units import Ratio


@styled
def search_path(trials: Sequence[Trial], title: str, goals: Sequence[GoalResult], subtitle: str = "") -> Figure:
    """Every trial's load in measured order, how each goal's bounds closed in and where they ended."""
    figure = page(title, subtitle)
    near = _near(trials, goals)
    shares = (1,) if near is None else (1, 2)
    panels = list(figure.subplots(len(shares), sharex=True, squeeze=False, height_ratios=shares).flat)
    for axes in panels:
        _goals(axes, trials, goals)
        _trials(axes, trials, goals)
        rate_axis(axes.yaxis)
        axes.set_ylabel("intended load")
    if near is not None:
        panels[-1].set_ylim(near)
        panels[-1].set_ylabel("close-up of the bounds")
    panels[-1].set_xlabel("trial number")
    panels[-1].xaxis.set_major_locator(MaxNLocator(12, integer=True))
    panels[-1].set_xlim(0.5, max(1, len(trials)) + 0.5)
    legend(figure)
    return figure


def _bounds(goal: GoalResult) -> list[float]:
    """The bounds that the goal has."""
    return [bound for bound in (goal.lower, goal.upper) if bound is not None]


def _near(trials: Sequence[Trial], goals: Sequence[GoalResult]) -> tuple[float, float] | None:
    """Limits of a close-up around the bounds; None when the whole picture shows them well enough."""
    bounds = [bound for goal in goals for bound in _bounds(goal)]
    if not (bounds and trials):
        return None
    room = 1.5 * (max(bounds) - min(bounds)) or 0.01 * max(bounds)
    low, high = min(bounds) - room, max(bounds) + room
    loads = [trial.intended_load for trial in trials]
    return (low, high) if 2.5 * (high - low) < max(loads) - min(loads) else None


def _trials(axes: Axes, trials: Sequence[Trial], goals: Sequence[GoalResult]) -> None:
    """A mark per trial; its kind says which of the goals' loss ratios it kept."""
    limits = sorted({0.0, *(goal.loss_ratio for goal in goals)})
    between = islice(cycle((("s", ORANGE), ("D", SKY), ("p", PURPLE))), len(limits) - 1)
    looks = [("o", GREEN), *between, ("^", VERMILION), ("x", FAINT)]
    names = ["no loss", *(f"loss ≤ {Ratio(limit)}" for limit in limits[1:]), f"loss > {Ratio(limits[-1])}"]
    members: dict[int, list[tuple[int, float]]] = {}
    for number, trial in enumerate(trials, 1):
        kind = len(names) if trial.generator_limited else bisect_left(limits, trial.steady_loss_ratio)
        members.setdefault(kind, []).append((number, trial.intended_load))
    for kind, (name, (marker, colour)) in enumerate(zip([*names, "generator-limited"], looks, strict=True)):
        if kind in members:
            axes.plot(*zip(*members[kind], strict=True), marker, markersize=7, color=colour, zorder=5, label=name)


def _goals(axes: Axes, trials: Sequence[Trial], goals: Sequence[GoalResult]) -> None:
    """The bounds by the trials so far as steps, and those that the search gave in the end as lines."""
    numbers = range(1, len(trials) + 1)
    for goal, colour in zip(goals, cycle((BLUE, PURPLE, INK, GREEN)), strict=False):
        so_far = np.array([known_bounds(trials[:number], goal.loss_ratio) for number in numbers], dtype=float)
        for steps in so_far.T:
            axes.step(
                numbers, steps, where="post", color=colour, linewidth=1.5, label=f"{goal.name} search: bounds so far"
            )
        for bound in _bounds(goal):
            label = f"{goal.name} search bounds: {interval(goal.lower, goal.upper)}"
            axes.axhline(bound, color=colour, linewidth=1, linestyle="--", alpha=0.7, label=label)
