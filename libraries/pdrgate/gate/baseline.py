"""What a scenario's result may be compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pdrgate.errors import DataError
from pdrgate.history.results import RESULT_FILE, read_result, results_below
from pdrgate.measurands import Cost
from pdrgate.results.fingerprint import KERNEL, difference, may_differ
from pdrgate.results.model import RunResult, ScenarioResult
from pdrgate.results.verdict import Verdict

_STABLE = frozenset({
    Verdict.PASS, Verdict.IMPROVEMENT, Verdict.NO_BASELINE, Verdict.REGRESSION, Verdict.INCONCLUSIVE
})  # fmt: skip
_ANCHORS = frozenset({Verdict.NO_BASELINE})
"""Of a folder of runs, those that were compared with nothing. A run that passed against one of them is none itself:
else each build could be a little slower than the one before it, and all of them pass."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A stored scenario to compare with, and where it lies."""

    source: str
    scenario: ScenarioResult

    @property
    def samples(self) -> dict[str, tuple[float, ...]]:
        """By measurand, the samples of the baseline."""
        return {one.name: one.samples for one in self.scenario.measurands}

    @property
    def boots(self) -> int:
        """That the samples are of: one, or those of a build that was compared with another."""
        whole = [boot for boot in self.scenario.boots if boot.side == "candidate" and not boot.failure]
        return len(whole) or 1


class Baselines:
    """What a run was given to compare with: one result, or a folder of runs. It is read when the run begins.

    A result.json, or the folder of one run, was *named*: a scenario that it cannot serve is an error. Of a folder of
    runs the newest serves that was itself compared with nothing (`_ANCHORS`). Either may be of another kernel, for that
    is what the gate is there to vary, see `may_differ`.

    Raises:
        DataError: ``path`` does not exist, or is no result that this version understands.
    """

    def __init__(self, path: Path, own: Path) -> None:
        self.path = path
        if not path.exists():
            raise DataError(f"the baseline {path} does not exist; name a result.json, the folder of a run or of runs")
        self.named = path.is_file() or (path / RESULT_FILE).exists()
        self._results: Sequence[tuple[Path, RunResult]]
        if self.named:
            source = path if path.is_file() else path / RESULT_FILE
            self._results = [(source, read_result(source))]
        else:
            # The run that asks, when it is resumed, is no baseline of its own.
            self._results = [
                (source, result) for source, result in results_below(path) if source.parent.resolve() != own.resolve()
            ]

    def find(self, fingerprint: Mapping[str, str]) -> tuple[Baseline | None, str]:
        """The baseline for a scenario with ``fingerprint``, or None and why there is none.

        Raises:
            DataError: one result was named, and it cannot serve.
        """
        refusals: list[tuple[int, str]] = []
        for source, result in self._results:
            found, refusal = _in_result(source, result, fingerprint, _STABLE if self.named else _ANCHORS)
            if found is not None:
                return found, ""
            refusals.append(refusal)
        if self.named:
            raise DataError(f"the baseline cannot serve: {refusals[0][1]}")
        if not refusals:
            return None, f"there is no result in {self.path} yet"
        return None, f"no result in {self.path} can serve; the nearest, {min(refusals)[1]}"


def _in_result(
    source: Path, result: RunResult, fingerprint: Mapping[str, str], accepted: frozenset[Verdict]
) -> tuple[Baseline | None, tuple[int, str]]:
    """The baseline in a result; else how far it is from serving, in entries that differ, and why it does not."""
    name = fingerprint.get("scenario")
    entries = [entry for entry in result.scenarios if entry.name == name]
    if not entries:
        names = ", ".join(entry.name for entry in result.scenarios) or "none"
        return None, (1000, f"{source} has no scenario {name} (it has: {names})")
    entry = entries[-1]
    theirs = entry.fingerprint
    if theirs.get("method") != fingerprint.get("method"):
        return None, (999, f"{source} was measured by an older pdrgate, which counted rates otherwise; measure it anew")
    free = may_differ(theirs, fingerprint)
    differing = []
    for key in sorted((theirs.keys() | fingerprint.keys()) - free):
        if theirs.get(key) != fingerprint.get(key):
            there, here = difference(theirs.get(key, "unknown"), fingerprint.get(key, "unknown"))
            differing.append(f"{key} {there} there, {here} here")
    if differing:
        return None, (len(differing), f"{source} is not comparable: {'; '.join(differing)}")
    was_compared = accepted is _ANCHORS and entry.comparison is not None
    if entry.verdict not in accepted or entry.pdr is None or was_compared:
        stable = "stable " if entry.verdict not in _STABLE else ""
        what = f"holds no {stable}PDR of this scenario" if stable or entry.pdr is None else "was compared itself"
        return None, (0, f"{source} {what} (it was {entry.verdict})")
    few = [one for one in entry.measurands if len(one.samples) < 2 and one.name != Cost.name]
    if few or not entry.measurands:
        count = len(few[0].samples) if few else 0
        return None, (0, f"{source} has {count} repeats; a comparison needs two or more")
    return Baseline(str(source), entry), (0, "")


def differing_entries(theirs: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """Fingerprint entries that are not equal, the baseline's value first."""
    keys = [*theirs, *(key for key in ours if key not in theirs)]
    return {key: (theirs.get(key), ours.get(key)) for key in keys if theirs.get(key) != ours.get(key)}


def besides_the_kernel(differs: Mapping[str, tuple[str | None, str | None]]) -> str:
    """A sentence on what else than the kernel is not equal, empty when nothing is: a change may come of that."""
    clauses = []
    for key, (theirs, ours) in differs.items():
        if key not in KERNEL:
            there, here = difference(theirs or "not told", ours or "not told")
            clauses.append(f"{key} {there} in the baseline, {here} here")
    return f"besides the kernel these differ: {'; '.join(clauses)}" if clauses else ""
