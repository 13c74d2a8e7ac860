"""What a run over several paths came to, in one table, the worst first; functions that changed on several told once."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from pdrgate.measurands import Cost, MeasurandRole, described
from pdrgate.reports.words.costs import total_change
from pdrgate.results.model import ComparisonResult, RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict, by_gravity

PATH_HEAD = ("path", "base", "candidate", "change", "verdict")
"""Base and candidate are instructions per packet."""
NUMBERS = frozenset({1, 2, 3})
"""Columns of numbers."""
_FEWEST = 2
"""Paths that a function changed on, to be told once for all of them."""
_TOLD = 5
"""Functions, and notices, that are told so."""


_PAIRS = (
    "paths are compared by instructions; packets/s of IPv6 routing are told by pairs of boots: the same command with "
    "--scenario kernel-build"
)


@dataclass(frozen=True, slots=True)
class PathLine:
    """A path in words; what was not measured is empty."""

    path: str
    base: str
    candidate: str
    change: str
    verdict: Verdict
    number: int
    """Of its scenario in the result, from 0."""

    @property
    def cells(self) -> tuple[str, ...]:
        """The line as a row below `PATH_HEAD`."""
        return (self.path, self.base, self.candidate, self.change, self.verdict)


def is_portfolio(result: RunResult) -> bool:
    """Whether builds were compared on several paths by what a packet costs, and by nothing else."""
    compared = [one.comparison for one in result.scenarios if one.comparison is not None]
    return len(result.scenarios) > 1 and bool(compared) and all(map(by_cost_alone, compared))


def by_cost_alone(comparison: ComparisonResult) -> bool:
    """Whether two builds were compared by what a packet costs, and by nothing else."""
    return _by_statistics(comparison) == [Cost.name]


def _by_statistics(comparison: ComparisonResult) -> list[str]:
    """The measurands of a comparison without those that need none, as what a load costs."""
    names = [change.measurand for change in comparison.changes]
    return [name for name in names if described(name).role is not MeasurandRole.TOLD]


def path_lines(result: RunResult) -> list[PathLine]:
    """A line for each path: the gravest verdict first, and of equal ones the largest rise of the cost."""
    numbered = sorted(enumerate(result.scenarios), key=lambda one: (by_gravity(one[1].verdict), -_rise(one[1])))
    return [_line(number, scenario) for number, scenario in numbered]


def shared_changes(result: RunResult) -> list[str]:
    """``__alloc_skb +91 in 14 of 26 paths``: functions that surely changed on several, the most instructions first."""
    found: dict[str, list[float]] = defaultdict(list)
    for scenario in result.scenarios:
        for one in scenario.comparison.functions if scenario.comparison is not None else ():
            if one.sure:
                found[one.label].append(one.change)
    several = {name: changes for name, changes in found.items() if len(changes) >= _FEWEST}
    largest = sorted(several, key=lambda name: -abs(sum(several[name])))[:_TOLD]
    paths = len(result.scenarios)
    return [f"{name} {median(several[name]):+.3g} in {len(several[name])} of {paths} paths" for name in largest]


def noticed(result: RunResult) -> list[str]:
    """``notice on NAT, and on 2 other paths that pass: dst_release is called twice for each packet, was once``."""
    paths: dict[str, list[str]] = defaultdict(list)
    for scenario in result.scenarios:
        if scenario.verdict is Verdict.PASS and scenario.comparison is not None and scenario.comparison.notice:
            paths[scenario.comparison.notice].append(scenario.origin.test or scenario.title)
    most = sorted(paths.items(), key=lambda one: -len(one[1]))[:_TOLD]
    return [f"notice on {_and_others(names)}: {notice}" for notice, names in most]


def said_of_paths(result: RunResult) -> list[str]:
    """What stands below the lines of the paths: what several share, what surely changed where they pass, and where more
    is told of what is slower."""
    slower = any(one.verdict is Verdict.REGRESSION for one in result.scenarios)
    return [*shared_changes(result), *noticed(result), *([_PAIRS] if slower else [])]


def _and_others(paths: list[str]) -> str:
    first, *others = paths
    if not others:
        return f"{first}, which passes"
    return f"{first}, and on {len(others)} other path{'s that pass' if len(others) > 1 else ' that passes'}"


def _rise(scenario: ScenarioResult) -> float:
    change = total_change(scenario.comparison) if scenario.comparison is not None else None
    return change.change if change is not None else 0.0


def _line(number: int, scenario: ScenarioResult) -> PathLine:
    base = candidate = told = ""
    change = total_change(scenario.comparison) if scenario.comparison is not None else None
    if change is not None:
        base, candidate = f"{change.baseline:.0f}", f"{change.candidate:.0f}"
        told = f"{change.change:+.1%} ({change.lower:+.1%} to {change.upper:+.1%})"
    return PathLine(scenario.origin.test or scenario.title, base, candidate, told, scenario.verdict, number)
