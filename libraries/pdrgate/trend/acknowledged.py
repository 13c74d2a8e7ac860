"""Alarms that somebody has looked at: a file names the builds since which a level is as it is, and they are silent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pdrgate.trend.moves import Move
from pdrgate.values.errors import DataError


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Builds that were looked at, each as the alarm names the first one of a new level.

    A line is the name of a build; or that, a colon and a measurand, where only that one was expected to move. What
    stands behind a ``#`` is for people.
    """

    lines: frozenset[str] = frozenset()

    @classmethod
    def read(cls, file: Path) -> Acknowledged:
        """The builds of a file. Raises DataError."""
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise DataError(f"cannot read {file}: {error}; name a file with a build on each line") from error
        return cls(frozenset(told for line in text.splitlines() if (told := line.partition("#")[0].strip())))

    def silences(self, move: Move) -> bool:
        """Whether somebody has looked at it."""
        return bool(self.lines & {move.after.build, f"{move.after.build}: {move.series.measurand}"})

    def divided(self, found: Iterable[Move]) -> tuple[tuple[Move, ...], tuple[Move, ...]]:
        """What is to be told, and what somebody has looked at."""
        moves = tuple(found)
        return (
            tuple(one for one in moves if not self.silences(one)),
            tuple(one for one in moves if self.silences(one)),
        )
