"""Which paths are affected: those of a run whose packets execute functions that differ between two builds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pdrgate.differences.code_differences import CodeDifferences
from pdrgate.results.model import Findings, RunResult, ScenarioResult


@dataclass(frozen=True, slots=True)
class PathRuns:
    """A path of a run, and which functions that differ its packets execute."""

    path: str
    functions: tuple[str, ...]
    is_known: bool = True
    """Whether functions of this path were counted in the run, and all that it may run was compared."""

    @property
    def is_affected(self) -> bool:
        """Whether it has to be measured: it executes other code, or what it executes is not known."""
        return bool(self.functions) or not self.is_known


def affected_paths(differences: CodeDifferences, run: RunResult) -> tuple[PathRuns, ...]:
    """Look at each path of a run.

    Functions are those that packets executed in any build of the run. Set-up, timers and values that boot code
    computes are not looked at.
    """
    differ = differences.functions_that_differ()
    found = []
    for scenario in run.scenarios:
        executed = {name for findings in _findings(scenario) for name in _executed(findings)}
        known = bool(executed) and not differences.missing
        found.append(PathRuns(scenario.origin.test or scenario.title, tuple(sorted(executed & differ)), known))
    return tuple(found)


def _findings(scenario: ScenarioResult) -> Iterator[Findings]:
    yield scenario.findings
    for side in scenario.builds.sides:
        yield side.findings


def _executed(findings: Findings) -> Iterator[str]:
    if findings.cost is not None:
        yield from (one.name for one in findings.cost.functions)
