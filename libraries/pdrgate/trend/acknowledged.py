"""Alarms that somebody has looked at: a file names the builds since which a level is as it is, and they are silent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pdrgate.trend.moves import Move
from pdrgate.values.errors import DataError


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
