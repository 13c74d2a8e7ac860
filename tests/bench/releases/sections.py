"""The sections of docs/releases.md: a table of all steps, and for each step what changed on which paths, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from known_causes import Causes
from step import Step

from pdrgate.results.model import ChangeResult, RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict

_NAMED = 3
"""Functions that a row names."""
_LISTED = 6
"""Paths that a row lists by name; of more it gives the number and the first ones."""


@dataclass(frozen=True, slots=True)
class _Change:
    """What changed on a path."""

    path: str
    change: ChangeResult
    functions: tuple[tuple[str, float], ...]
    """Functions whose work changed the same way, the largest change first."""

    @property
    def worse(self) -> bool:
        return self.change.verdict is Verdict.REGRESSION

    @property
    def group(self) -> tuple[bool, str, str]:
        """Equal for paths whose changes probably have one cause."""
        return self.worse, self.change.measurand, self.functions[0][0] if self.functions else ""


def sections(steps: Sequence[tuple[Step, RunResult]], causes: Causes) -> list[str]:
    """Lines of Markdown."""
    lines = ["| step | dearer | cheaper | as before | others | paths |", "|---|---|---|---|---|---|"]
    for step, result in steps:
        verdicts = [one.verdict for one in result.scenarios]
        dearer, cheaper, same = (verdicts.count(one) for one in (Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.PASS))
        others = sorted(
            f"{one.origin.test}: {one.verdict}"
            for one in result.scenarios
            if one.verdict not in (Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.PASS)
        )
        cells = step.label, str(dearer), str(cheaper), str(same), ", ".join(others) or "none", str(len(verdicts))
        lines.append(f"| {' | '.join(cells)} |")
    for step, result in steps:
        lines += ["", f"## {step.label.replace('->', 'to')}", "", *_table(step, result, causes)]
    return lines


def _table(step: Step, result: RunResult, causes: Causes) -> Iterator[str]:
    groups: dict[tuple[bool, str, str], list[_Change]] = {}
    for scenario in result.scenarios:
        for change in _changes(scenario):
            groups.setdefault(change.group, []).append(change)
    if not groups:
        yield "Every path costs what it cost."
        return
    yield "| what | functions | paths | why |"
    yield "|---|---|---|---|"
    for changes in sorted(groups.values(), key=lambda found: (not found[0].worse, -len(found))):
        first = max(changes, key=lambda one: abs(one.change.change))
        names = [name for name, _ in first.functions]
        cells = (
            f"{'**dearer**' if first.worse else 'cheaper'}: {_by(changes)}",
            ", ".join(f"{name} {by:+.3g}" for name, by in first.functions[:_NAMED]),
            _paths(changes),
            causes.of(step.label, names[:_NAMED]),
        )
        yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _changes(scenario: ScenarioResult) -> Iterator[_Change]:
    """Changes that decide the path's verdict, and those that are as surely for the better."""
    comparison = scenario.comparison
    for change in comparison.changes if comparison is not None else ():
        better = change.upper < -change.tolerance if change.better == "lower" else change.lower > change.tolerance
        if change.verdict is Verdict.REGRESSION or (better and change.verdict in (Verdict.IMPROVEMENT, Verdict.PASS)):
            yield _Change(scenario.origin.test or scenario.title, change, tuple(_functions(scenario, change)))


def _functions(scenario: ScenarioResult, change: ChangeResult) -> list[tuple[str, float]]:
    comparison = scenario.comparison
    if change.parts or comparison is None:
        found = [(one.function, one.change) for one in change.parts]
    else:
        found = [(one.function, one.change) for one in comparison.functions if one.sure]
    more = change.candidate > change.baseline
    return sorted((one for one in found if (one[1] > 0) == more), key=lambda one: -abs(one[1]))


def _by(changes: Sequence[_Change]) -> str:
    """``cost +1.2 to +3.4 %``; of what a packet may have had none of, the difference."""
    first = changes[0].change
    if first.parts:
        found = sorted(sum(part.change for part in one.change.parts) for one in changes)
        unit, scale = "", 1.0
    else:
        found = sorted(one.change.change for one in changes)
        unit, scale = " %", 100.0
    numbers = list(dict.fromkeys(f"{scale * one:+.1f}" for one in (found[0], found[-1])))
    return f"{first.measurand} {' to '.join(numbers)}{unit}"


def _paths(changes: Sequence[_Change]) -> str:
    names = [one.path for one in sorted(changes, key=lambda one: -abs(one.change.change))]
    if len(names) <= _LISTED:
        return ", ".join(names)
    return f"{len(names)}: {', '.join(names[:_LISTED])}, …"
