"""Whether a stored result's verdict is what its own numbers say: a word alone is nobody's evidence."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from pdrgate.results.model import ChangeResult, RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict

_CLAIMS = (Verdict.PASS, Verdict.IMPROVEMENT)
"""Verdicts that say something of a comparison."""
_FAILED_BOOTS = 2
"""So many failed boots of one build no comparison passes with."""


def contradictions(result: RunResult) -> Iterator[str]:
    """What speaks against the verdicts that pass, in clauses, the first of each scenario.

    Looked at are the changes with their intervals and tolerances, the evidence of pairs, and the values of the boots.
    Who forges all of these alike is not found out by them.
    """
    if result.verdict.passes and (failing := [one for one in result.scenarios if not one.verdict.passes]):
        yield f"it says {result.verdict}, and its scenario {failing[0].label} {failing[0].verdict}"
    if result.verdict.passes and not result.scenarios:
        yield f"it says {result.verdict}, and has no scenario"
    for scenario in result.scenarios:
        if scenario.verdict.passes and (found := next(_against(scenario), "")):
            yield f"{scenario.label} says {scenario.verdict}, and {found}"


def _against(scenario: ScenarioResult) -> Iterator[str]:
    comparison = scenario.comparison
    if comparison is None:
        if scenario.verdict in _CLAIMS:
            yield "nothing was compared"
        return
    if not comparison.accepted:
        yield "its comparison was not accepted"
    for change in comparison.changes:
        if change.verdict is not Verdict.NO_BASELINE and not change.verdict.passes:
            yield f"its {change.measurand} {change.verdict}"
        if scenario.verdict in _CLAIMS:
            yield from _beyond(change)
            yield from _boots_beyond(scenario, change)
    for side in ("baseline", "candidate"):
        if sum(bool(boot.failure) for boot in scenario.builds.boots if boot.side == side) >= _FAILED_BOOTS:
            yield f"boots of its {side} failed"


def _gain(log_ratio: float, change: ChangeResult) -> float:
    return log_ratio if change.better == "higher" else -log_ratio


def _least(change: ChangeResult) -> float:
    """The gain, a log, below which a change is beyond its tolerance."""
    return math.log1p(-change.tolerance) if change.better == "higher" else -math.log1p(change.tolerance)


def _beyond(change: ChangeResult) -> Iterator[str]:
    """Whether the change is worse than its tolerance, or its evidence rather for that than against."""
    if change.change <= -1 or _gain(math.log1p(change.change), change) < _least(change):
        yield f"its {change.measurand} changed by {change.change:+z.1%}, tolerance {change.tolerance:.1%}"
    if change.evidence is not None and change.evidence.slower > 0:
        yield f"the evidence of its {change.measurand} is for a slower build"


def _boots_beyond(scenario: ScenarioResult, change: ChangeResult) -> Iterator[str]:
    """Whether the boots' own values are worse than the tolerance, by mean and median."""
    values: dict[int, dict[str, float]] = {}
    for boot in scenario.builds.boots:
        if change.measurand in boot.values and not boot.failure:
            values.setdefault(boot.pair, {})[boot.side] = boot.values[change.measurand]
    whole = [own for own in values.values() if len(own) > 1 and min(own.values()) > 0]
    gains = [_gain(math.log(own["candidate"]) - math.log(own["baseline"]), change) for own in whole]
    if gains and max(statistics.fmean(gains), statistics.median(gains)) < _least(change):
        told = math.expm1(_gain(statistics.median(gains), change))
        yield f"its boots' {change.measurand} differ by {told:+z.1%}, tolerance {change.tolerance:.1%}"
