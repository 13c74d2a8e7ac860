"""The one function that many paths are slower by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from pdrgate.measurands import Cost, told_once
from pdrgate.replication.samples import gravest_change
from pdrgate.results.model import ChangeResult, ScenarioResult
from pdrgate.results.verdict import Verdict

_FEWEST = 2
"""Paths that have one cause, at least."""
_MOST = 0.5
"""A share of a path's change: a function with as much is its cause."""


@dataclass(frozen=True, slots=True)
class CommonCause:
    """A function that most of the change of several paths lies in."""

    function: str
    median: float
    """How much more of the measurand a packet has there, in the middle of the paths."""
    measurand: str
    """The name of the measurand; empty for instructions."""
    paths: int

    def __str__(self) -> str:
        """``sum_of_header +170``, ``refcount_inc +1 atomics``."""
        growth = f"{self.function} {self.median:+z.3g}"
        return f"{growth} {self.measurand}" if self.measurand else growth


def common_cause(scenarios: Sequence[ScenarioResult]) -> CommonCause | None:
    """The function that the most paths are slower by; None where no two have one cause."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for scenario in scenarios:
        for cause, change in _causes(scenario):
            found[cause].append(change)
    several = {cause: changes for cause, changes in found.items() if len(changes) >= _FEWEST}
    if not several:
        return None
    function, measurand = most = max(several, key=lambda one: (len(several[one]), sum(several[one])))
    return CommonCause(function, median(several[most]), measurand, len(several[most]))


def _causes(scenario: ScenarioResult) -> Iterator[tuple[tuple[str, str], float]]:
    """Functions that have most of the change that a REGRESSION rests on, with the measurand and how much more."""
    comparison = scenario.comparison
    if comparison is None or scenario.verdict is not Verdict.REGRESSION:
        return
    worse = [one for one in told_once(comparison.changes) if one.verdict is Verdict.REGRESSION]
    if not worse:
        return
    change: ChangeResult = gravest_change(worse)
    more = change.candidate - change.baseline
    if change.parts:
        grown = [(part.label, part.change) for part in change.parts]
    else:
        grown = [(one.label, one.change) for one in comparison.functions if one.sure and change.measurand == Cost.name]
    for label, value in grown:
        if more > 0 and value >= _MOST * more:
            yield (label, "" if change.measurand == Cost.name else change.measurand), value
