"""What a run over several paths came to, in one table, the worst first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pdrgate.measurands import DESCRIPTIONS, Cost, PartialDropRate, Rule, SaturationThroughput, described
from pdrgate.measurands.slower_paths import searched_besides
from pdrgate.replication.samples import gravest_change
from pdrgate.reports.tree import Cell, Column, Table
from pdrgate.reports.words.costs import total_change
from pdrgate.reports.words.measurand_tables import change_cell
from pdrgate.reports.words.measurands import change_told, intervals_in_words, tolerance_told, verdict_in_words
from pdrgate.results.model import ChangeResult, ComparisonResult, RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict, by_gravity

_COLUMNS = (
    Column("path", heads=True, wraps=True), Column("base", True, wraps=True), Column("candidate", True, wraps=True),
    Column("change", True, wraps=True),
)  # fmt: skip
_OF_LIVING_BOOTS = {one.name for one in DESCRIPTIONS} - {PartialDropRate.name, SaturationThroughput.name}
"""All but what takes several loads: boots that stay up are counted."""


@dataclass(frozen=True, slots=True)
class PathLine:
    """A path in words; what was not measured is empty."""

    path: str
    base: str
    candidate: str
    change: str
    verdict: Verdict
    number: int
    """Number of the path's scenario in the result, from 0."""
    measurand: str = ""
    """What changed, where it is another measurand than the cost of a packet."""
    is_sure: bool = False
    """Whether the interval of the change leaves no doubt of its direction."""


def paths_table(lines: Sequence[PathLine], result: RunResult, pages: Mapping[int, str] | None = None) -> Table:
    """A row for each of the lines; its note says what stands in brackets.

    Args:
        pages: addresses of pages of the paths, by the number of their scenario.
    """
    links = pages or {}
    rows = [
        [
            Cell(one.path, link=links.get(one.number, "")), Cell(one.base), Cell(one.candidate),
            change_cell(f"{one.measurand} {one.change}".strip(), one.verdict, _verdict(result.scenarios[one.number])),
        ]
        for one in lines
    ]  # fmt: skip
    note = intervals_in_words(*(one.comparison for one in result.scenarios))
    return Table("The worst first; instructions per packet, where no unit is said", _COLUMNS, rows, note)


def _verdict(scenario: ScenarioResult) -> str:
    """``✗ REGRESSION``, and until when it is acknowledged."""
    known = acknowledged_until(scenario)
    return ", ".join(filter(None, (verdict_in_words(scenario.verdict), known and f"acknowledged until {known}")))


def acknowledged_until(scenario: ScenarioResult) -> str:
    """The last day of what is acknowledged of a scenario; empty where that does not cover it."""
    return min((one.until for one in scenario.details.acknowledged), default="")


def is_portfolio(result: RunResult) -> bool:
    """Whether builds were compared on several paths, each by boots that stay up, and by nothing else."""
    paths = [result.scenarios[number].comparison for number in paths_of(result)]
    compared = [one for one in paths if one is not None]
    return len(paths) > 1 and bool(compared) and all(map(_by_living_boots, compared))


def is_path(scenario: ScenarioResult) -> bool:
    """Whether two builds were compared on a path by boots that stay up: its test is called as the path is."""
    return scenario.comparison is not None and bool(scenario.origin.test) and _by_living_boots(scenario.comparison)


def _by_living_boots(comparison: ComparisonResult) -> bool:
    names = [change.measurand for change in comparison.changes]
    return bool(names) and _OF_LIVING_BOOTS.issuperset(names)


def path_lines(result: RunResult) -> list[PathLine]:
    """A line for each path: the gravest verdict first, and of equal ones the largest rise of the cost."""
    numbered = ((number, result.scenarios[number]) for number in paths_of(result))
    worst = sorted(numbered, key=lambda one: (by_gravity(one[1].verdict), -_rise(one[1])))
    return [_line(number, scenario) for number, scenario in worst]


def lines_that_tell(result: RunResult) -> tuple[list[PathLine], str]:
    """Lines for a first screen: all where all pass, else those that do not just pass; and how many others do."""
    lines = path_lines(result)
    passing = all(one.verdict.passes for one in lines)
    telling = lines if passing else [one for one in lines if one.verdict is not Verdict.PASS]
    others = len(lines) - len(telling)
    return telling, f"{others} other path{'s' * (others > 1)}: PASS; summary.html has them" if others else ""


def paths_of(result: RunResult) -> list[int]:
    """The numbers of the scenarios that are paths, and no searches of one."""
    searches = searched_besides(result.scenarios)
    return [number for number, one in enumerate(result.scenarios) if not any(one is other for other in searches)]


def _rise(scenario: ScenarioResult) -> float:
    change = total_change(scenario.comparison) if scenario.comparison is not None else None
    return change.change if change is not None else 0.0


def _line(number: int, scenario: ScenarioResult) -> PathLine:
    base = candidate = told = measurand = ""
    is_sure = False
    change = _first_told(scenario)
    if change is not None:
        base, candidate = (_number(change, value) for value in (change.baseline, change.candidate))
        told = change_told(change)
        measurand = change.measurand if change.measurand != Cost.name else ""
        is_sure = change.lower * change.upper > 0
        wide = change.tolerance > described(change.measurand).tolerance.default
        if scenario.verdict is Verdict.PASS and (is_sure or wide):  # what would else contradict its mark
            told += f", tolerance {tolerance_told(change)}"
    return PathLine(scenario.label, base, candidate, told, scenario.verdict, number, measurand, is_sure)


def _first_told(scenario: ScenarioResult) -> ChangeResult | None:
    """The change that a REGRESSION rests on, the cost's where it is one of them; else that of the cost.

    Where no packets were counted it is the gravest, and of equal ones the first.
    """
    changes = scenario.comparison.changes if scenario.comparison is not None else ()
    cost = next((one for one in changes if one.measurand == Cost.name), None)
    worse = [one for one in changes if one.verdict is scenario.verdict is Verdict.REGRESSION]
    if worse and cost not in worse:
        return gravest_change(worse)
    judged = [one for one in changes if described(one.measurand).rule is Rule.PAIRS]
    return cost or min(judged, key=lambda one: by_gravity(one.verdict), default=None)


def _number(change: ChangeResult, value: float) -> str:
    return f"{value:.0f}" if change.measurand == Cost.name else described(change.measurand).quantity.said(value)
