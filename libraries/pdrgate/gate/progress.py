"""What those who watch a run are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pdrgate.gate.scenario import Scenario
from pdrgate.trial import Trial


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a scenario stands after a trial."""

    scenario: Scenario
    trial: Trial
    number: int
    """Trials so far, this one included."""
    replayed: bool
    """The trial is of the run that is resumed."""
    lower: float | None
    upper: float | None
    """What the trials so far say of the PDR's goal: the highest load that holds, the lowest that does not."""
    left: float
    """Seconds that the scenario still takes, by what is known so far."""


class Observer(Protocol):
    """Who watches a run: a console, Robot's log."""

    def said(self, sentence: str) -> None:
        """Something happened that a person wants to know."""

    def measured(self, progress: Progress) -> None:
        """A trial ended."""
