"""What the gate made of a known change, and all of them in a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from known_change import KnownChange

from pdrgate.history.results import read_result
from pdrgate.results.model import ChangeResult, RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict
from pdrgate.values.printable import first_names

_CAUGHT = (Verdict.REGRESSION, Verdict.CRASH, Verdict.UNSTABLE)
_NAMED = 3
"""Functions that are named where none of those that were hoped for is."""
HEAD = ("#", "what happened", "class", "told", "where", "named", "selected for", "paths", "pairs", "seconds")
LEFT_OUT = "**left out**"


@dataclass(frozen=True, slots=True)
class Kept:
    """A run that is done, as the bench keeps it beside the runs: not measured again."""

    candidate: str
    """The commit that was judged."""
    baseline: str
    seconds: float
    """Compiling included."""
    run: str
    """The folder's name."""
    touched: Mapping[str, list[str]] | None = None
    """What differs of the code of each path that the baseline is known to run; None where that was not asked."""

    def write(self, file: Path) -> None:
        """Keep it."""
        file.write_text(json.dumps(asdict(self)) + "\n")

    @classmethod
    def read(cls, file: Path) -> Kept | None:
        """What was kept; None where nothing was."""
        return cls(**json.loads(file.read_text())) if file.exists() else None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A change and the run that judged it."""

    change: KnownChange
    result: RunResult
    seconds: float
    touched: Mapping[str, list[str]] | None = None
    """As `Kept` has it."""

    @property
    def caught(self) -> bool:
        """Whether the gate failed the build."""
        return self.result.verdict in _CAUGHT

    @property
    def noticed(self) -> Sequence[ScenarioResult]:
        """Paths that do not fail, and tell what surely changed: in a notice, or as a change about the tolerance."""
        others = [one for one in self.result.scenarios if one.comparison is not None and one.verdict not in _CAUGHT]
        return [one for one in others if (one.comparison and one.comparison.notice) or _surely_slower(one)]

    @property
    def as_expected(self) -> bool:
        """Whether a regression was caught, or what is none passed."""
        return self.caught == (self.change.expected == "REGRESSION")

    @property
    def told(self) -> str:
        """The verdict; what passes with a notice says so."""
        noticed = not self.caught and self.noticed
        return f"{self.result.verdict}, noticed" if noticed else str(self.result.verdict)

    @property
    def where(self) -> str:
        """The path that tells it most, its measurand and the change there, and how many others do."""
        found, worst = self._slower, self._worst
        if worst is None:
            return ""
        decisive = _change(worst)
        told = f"{decisive.measurand} {_by(decisive)}" if decisive is not None else worst.reason
        others = f", and {len(found) - 1} other path{'s' if len(found) > 2 else ''}" if len(found) > 1 else ""
        return f"{worst.origin.test or worst.title}: {told}{others}"

    @property
    def selected(self) -> str:
        """For what `--paths affected` measures the path that shows it: code of its own that differs, or always."""
        if self._worst is None or self.touched is None:
            return ""
        path = self._worst.origin.test or self._worst.title
        if path not in self.touched:
            return "always"
        return first_names(self.touched[path], 4) or LEFT_OUT

    @property
    def _slower(self) -> Sequence[ScenarioResult]:
        return [one for one in self.result.scenarios if one.verdict in _CAUGHT] or list(self.noticed)

    @property
    def _worst(self) -> ScenarioResult | None:
        return max(self._slower, key=lambda one: abs(_change(one).change) if _change(one) else 0.0, default=None)

    @property
    def named(self) -> str:
        """Functions that surely changed: those that lead to the cause in bold, or else the largest changes."""
        changed: dict[str, float] = {}
        for name, change in _functions(self.result.scenarios):
            if abs(change) >= abs(changed.get(name, 0.0)):
                changed[name] = change
        hoped = [f"**{name}** {changed[name]:+.3g}" for name in self.change.names if name in changed]
        largest = sorted(changed, key=lambda name: -abs(changed[name]))[:_NAMED]
        return ", ".join(hoped or [f"{name} {changed[name]:+.3g}" for name in largest])

    @property
    def in_short(self) -> str:
        """The verdict and the path, in one cell; what selects it where that was asked."""
        selected = f"; selected for {self.selected}" if self.selected else ""
        return f"{self.told}{f': {self.where}' if self.where else ''}{selected}"

    @property
    def cells(self) -> tuple[str, ...]:
        """A row below `HEAD`."""
        pairs = max((one.comparison.pairs for one in self.result.scenarios if one.comparison is not None), default=0)
        number = str(self.change.number) if self.change.number else ""
        return (
            number, f"{self.change.title} ({self.change.change})", self.change.class_, self.told, self.where,
            self.named, self.selected, str(len(self.result.scenarios)), str(pairs), f"{self.seconds:.0f}",
        )  # fmt: skip


def outcomes(changes: Iterable[KnownChange], results: Path) -> list[Outcome]:
    """What the kept runs came to; a change without one is left out."""
    kept = ((change, Kept.read(kept_file(results, change))) for change in changes)
    return [
        Outcome(change, read_result(results / change.name / one.run), one.seconds, one.touched)
        for change, one in kept
        if one
    ]


def kept_file(results: Path, change: KnownChange) -> Path:
    """The file in which a `Kept` of the change is."""
    return results / f"{change.name}.json"


def table(told: Mapping[str, Sequence[Outcome]]) -> list[str]:
    """Lines of a Markdown table with a row for each regression, and one line of counts for each base.

    Args:
        told: the outcomes by base, such as 6.1: all cells of the first, and one cell of each other.
    """
    first, *others = sorted(told, key=_version) or [""]
    rows = {one.change.number: one.cells for one in told.get(first, ())}
    for line in others:
        for one in told[line]:
            rows.setdefault(one.change.number, (*one.cells[:3], *("" for _ in HEAD[3:])))
    short = [{one.change.number: one.in_short for one in told[line]} for line in others]
    whole = [(*rows[number], *(some.get(number, "") for some in short)) for number in sorted(rows)]
    head = (*HEAD, *(f"on {line}" for line in others))
    lines = [
        f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in (head, ("---",) * len(head), *whole)
    ]
    return [*lines, "", *(f"{line}: {_counts(told[line])}" for line in (first, *others) if line)]


def _counts(told: Sequence[Outcome]) -> str:
    owed = [one for one in told if one.change.expected == "REGRESSION"]
    others = [one for one in told if one.change.expected != "REGRESSION"]
    caught, passed = (sum(one.as_expected for one in some) for some in (owed, others))
    counts = f"{caught} of {len(owed)} regressions caught, {passed} of {len(others)} others passed"
    asked = [one for one in owed if one.caught and one.selected]
    selected = sum(one.selected != LEFT_OUT for one in asked)
    return f"{counts}; the path that shows it is selected for {selected} of {len(asked)}" if asked else counts


def _version(line: str) -> tuple[int, ...]:
    return tuple(int(part) for part in line.split("."))


def _change(scenario: ScenarioResult) -> ChangeResult | None:
    changes = scenario.comparison.changes if scenario.comparison is not None else ()
    judged = [one for one in changes if one.verdict in _CAUGHT]
    return next(iter(judged or changes), None)


def _surely_slower(scenario: ScenarioResult) -> bool:
    decisive = _change(scenario)
    undecided = scenario.verdict is Verdict.INCONCLUSIVE and decisive is not None and decisive.better == "lower"
    return undecided and decisive is not None and decisive.lower > 0


def _functions(scenarios: Iterable[ScenarioResult]) -> Iterable[tuple[str, float]]:
    """Functions that surely changed, and by how much: of the cost, and of what memory trials count."""
    for scenario in scenarios:
        comparison = scenario.comparison
        for one in comparison.functions if comparison is not None else ():
            if one.sure or one.calls_changed:
                yield one.label, one.change
        for part in (part for one in comparison.changes for part in one.parts) if comparison is not None else ():
            yield part.function, part.change
            if part.writer:
                yield part.writer, part.change


def _by(change: ChangeResult) -> str:
    """A change; of what a packet may have had none of, no share of it."""
    return f"{sum(one.change for one in change.parts):+.1f}" if change.parts else f"{change.change:+.1%}"
