"""What is reported to those who watch a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pdrgate.gate.run.scenario import Scenario
from pdrgate.measurands import Ask
from pdrgate.record.trial import Trial
from pdrgate.results.model import Side


@dataclass(frozen=True, slots=True)
class Estimate:
    """How long something still takes, in seconds: from and to, for what is measured decides how much is wanted."""

    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a scenario is after a trial."""

    scenario: Scenario
    trial: Trial
    number: int
    """Trials so far, this one included."""
    replayed: bool
    """The trial is of the run that is resumed."""
    lower: float | None
    upper: float | None
    """What the trials so far say of the PDR's goal: the highest load that holds, the lowest that does not."""
    left: Estimate | None
    """What the scenario still takes, by what is known so far; None where nothing is."""


class RunObserver(Protocol):
    """A watcher of a run: a console, or Robot's log.

    One that derives from it is silent about what it has no method for.
    """

    def said(self, sentence: str) -> None:
        """Something happened that a person may want to know."""

    def warned(self, sentence: str) -> None:
        """Something happened that a person must see: the run waits, or something failed that is no test."""
        self.said(sentence)

    def measuring(self, ask: Ask, side: Side | None, pair: int) -> None:
        """A trial, or a transfer, begins.

        Args:
            side: the build that is measured; None where there is one alone.
            pair: number of its pair of boots, from 1; 0 where there are no pairs.
        """

    def measured(self, progress: Progress) -> None:
        """A trial ended."""
