"""The change points of a series of builds, as they are reported to a person.

A file may name the builds since which a level is as it is: somebody has looked at those alarms, and they are silent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pdrgate.results.model import FunctionChange
from pdrgate.stats.change_points import change_points
from pdrgate.this_process.checkout import GATE_COMMAND
from pdrgate.trend.series import Point, Series
from pdrgate.values.errors import DataError

LEAST_MOVE = 0.01
MOVE_CONFIDENCE = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A measurand that went to another level and stayed there."""

    series: Series
    before: Point
    """The last one that surely was at the level before."""
    after: Point
    """The first one that surely was at the level after."""
    between: tuple[Point, ...]
    """Points between the two. Each may be of either level or on the way; disturbed points are left out."""
    change: float
    """Relative change: (level after - level before) / level before."""
    lower: float
    upper: float
    creeps: bool
    """Whether the change went in many small steps that a gate cannot see."""
    functions: tuple[FunctionChange, ...] = ()
    """Functions whose cost changed from ``before`` to ``after``, the largest change first; empty if nobody counted."""
    within: str = ""
    """The functions' part of the change in words, as far as it explains the move."""

    @property
    def worse(self) -> bool:
        """Whether somebody should look."""
        return (self.change < 0) == (self.series.better == "higher")

    @property
    def builds(self) -> tuple[str, ...]:
        """The builds of the range in order, each once; a single build if the testbed moved under it."""
        return tuple(dict.fromkeys(point.build for point in (self.before, *self.between, self.after)))

    @property
    def sentence(self) -> str:
        """Sentence of what moved, by how much, and between which builds."""
        how = ("crept" if self.creeps else "went") + (" up" if self.change > 0 else " down")
        by = f"{abs(self.change):.1%} ({self.lower:+z.1%} to {self.upper:+z.1%})"
        within = f", {self.within}" if self.within else ""
        return f"{self.series.measurand} {how} by {by} {self._where()}{within}"

    @property
    def command(self) -> str:
        """Command line that measures both ends against each other; empty if both are the same build."""
        if self.before.build == self.after.build:
            return ""
        option = self.after.option or "--kernel AFTER"
        against = self.before.option.partition(" ")[2] or "BEFORE"
        return f"{GATE_COMMAND} {option} --against {against}"

    def _where(self) -> str:
        if len(self.builds) == 1:
            return f"on one and the same build, {self.before.build}: the testbed moved, not the build"
        span = f"between {self.before.build} and {self.after.build}"
        number = len(self.builds) - 2
        if not number:
            return span
        return f"{span}, {number} build{'s' if number > 1 else ''} between them"


def moves(all_series: Iterable[Series], least: float = LEAST_MOVE, last: int | None = None) -> tuple[Move, ...]:
    """All moves, the latest first.

    Args:
        least: a smaller change, as a fraction, is not reported.
        last: only moves within as many of the last points of their series.
    """
    all_moves = [move for series in all_series for move in _of(series, least, last)]
    return tuple(sorted(all_moves, key=lambda move: move.after.time, reverse=True))


def _of(series: Series, least: float, last: int | None) -> list[Move]:
    points = [point for point in series.points if point.counts]
    since = 0 if last is None else len(points) - last
    return [
        Move(
            series=series,
            before=points[one.before],
            after=points[one.after],
            between=tuple(points[one.before + 1 : one.after]),
            change=one.change,
            lower=one.lower,
            upper=one.upper,
            creeps=one.creeps,
        )
        for one in change_points([point.value for point in points], least, MOVE_CONFIDENCE)
        if one.after >= since
    ]


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Builds that somebody has looked at, each written as the alarm names the first build of a new level.

    A line is the name of a build, or a build, a colon and the only measurand that was expected to move. Text behind a
    ``#`` is a comment.
    """

    lines: frozenset[str] = frozenset()

    @classmethod
    def read(cls, file: Path) -> Acknowledged:
        """The builds of a file. Raises DataError."""
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise DataError(f"cannot read {file}: {error}; name a file with a build on each line") from error
        return cls(frozenset(named for line in text.splitlines() if (named := line.partition("#")[0].strip())))

    def silences(self, move: Move) -> bool:
        """Whether somebody has looked at this move."""
        return bool(self.lines & {move.after.build, f"{move.after.build}: {move.series.measurand}"})

    def divided(self, moves: Iterable[Move]) -> tuple[tuple[Move, ...], tuple[Move, ...]]:
        """The moves to report, and the moves that somebody has looked at."""
        listed = tuple(moves)
        return (
            tuple(move for move in listed if not self.silences(move)),
            tuple(move for move in listed if self.silences(move)),
        )
