"""Paths that were compared by what a packet costs: which are worth a search by pairs of boots, and which had it.

A search of the same scenario shows PDR and saturation throughput besides. It takes as long as ten paths.
"""

from __future__ import annotations

from collections.abc import Sequence

from pdrgate.measurands import Cost, Rule, described
from pdrgate.results.model import ComparisonResult, ScenarioResult
from pdrgate.results.verdict import Verdict, gravest_verdict


def by_cost_alone(comparison: ComparisonResult) -> bool:
    """Whether two builds were compared by what a packet costs, and by nothing else but what loading programs costs."""
    names = [change.measurand for change in comparison.changes]
    return [name for name in names if described(name).rule is Rule.PAIRS] == [Cost.name]


def slower_paths(scenarios: Sequence[ScenarioResult]) -> list[ScenarioResult]:
    """The path that got slowest, then those that another function made slower, the slowest of each."""
    worst = sorted(filter(_got_slower, scenarios), key=lambda one: -_rise(one))
    first: dict[str, ScenarioResult] = {}
    for one in worst:
        first.setdefault(_culprit(one), one)
    return list(first.values())


def searched_besides(scenarios: Sequence[ScenarioResult]) -> list[ScenarioResult]:
    """The searches of scenarios that are also there as paths compared by what a packet costs."""
    paths = {one.name for one in scenarios if _by_cost(one)}
    return [one for one in scenarios if one.name in paths and one.comparison is not None and not _by_cost(one)]


def decisive_scenario(scenarios: Sequence[ScenarioResult]) -> ScenarioResult | None:
    """The scenario that the verdict of all is of: the gravest, and of equal ones a search, which measures more of its
    path. One whose change is acknowledged decides nothing."""
    counting = [one for one in scenarios if not one.details.acknowledged]
    word = gravest_verdict(one.verdict for one in counting)
    found = [one for one in counting if one.verdict is word]
    searches = searched_besides(scenarios)
    return next((one for one in found if any(one is other for other in searches)), next(iter(found), None))


def _by_cost(scenario: ScenarioResult) -> bool:
    return scenario.comparison is not None and by_cost_alone(scenario.comparison)


def _got_slower(scenario: ScenarioResult) -> bool:
    return scenario.counts_as is Verdict.REGRESSION and _by_cost(scenario) and _rise(scenario) > 0


def _rise(scenario: ScenarioResult) -> float:
    changes = scenario.comparison.changes if scenario.comparison is not None else ()
    return next((one.change for one in changes if one.measurand == Cost.name), 0.0)


def _culprit(scenario: ScenarioResult) -> str:
    """The function that grew most, of those that surely did."""
    functions = scenario.comparison.functions if scenario.comparison is not None else ()
    grown = [one for one in functions if one.sure and one.change > 0]
    return max(grown, key=lambda one: one.change).function if grown else ""
