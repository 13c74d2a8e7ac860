"""What those who watch a run are told."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Seconds that the scenario still takes, as planned."""


class Observer(Protocol):
    """Who watches a run: a console, Robot's log."""

    def said(self, sentence: str) -> None:
        """Something happened that a person wants to know."""

    def measured(self, progress: Progress) -> None:
        """A trial ended."""


def known_bounds(trials: Sequence[Trial], loss_ratio: float) -> tuple[float | None, float | None]:
    """The highest load below which no trial lost more than ``loss_ratio``, and the lowest that did, packets/s.

    A quick view for people who watch; MLRsearch's relevant bounds weigh trials by duration and exceed ratio.
    """
    counted = [trial for trial in trials if not trial.generator_limited]
    upper = min((trial.intended_load for trial in counted if trial.loss_ratio > loss_ratio), default=None)
    holding = [
        trial.intended_load
        for trial in counted
        if trial.loss_ratio <= loss_ratio and (upper is None or trial.intended_load < upper)
    ]
    return max(holding, default=None), upper
