"""Finds what a scenario's result may be compared with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pdrgate.errors import DataError
from pdrgate.gate.compare import Baseline
from pdrgate.gate.fingerprint import difference, may_differ
from pdrgate.history.results import read_result, results_below
from pdrgate.results.model import RunResult
from pdrgate.results.verdict import Verdict

_PASSED = frozenset({Verdict.PASS, Verdict.IMPROVEMENT, Verdict.NO_BASELINE})
_STABLE = _PASSED | {Verdict.REGRESSION, Verdict.INCONCLUSIVE}


def find_baseline(path: Path, fingerprint: Mapping[str, str], own: Path) -> tuple[Baseline | None, str]:
    """The baseline in ``path`` for a scenario with ``fingerprint``, and, when there is none, why.

    A result.json, or the folder of one run, may be of another kernel, see `may_differ`. Of a folder of runs the newest
    result of the very same fingerprint is taken that passed: a run that failed is no measure for the next one, or
    starting it again would turn it green. ``own``, the folder of the run that asks, is left out.

    Raises:
        DataError: ``path`` does not exist, or is no result.
    """
    if not path.exists():
        raise DataError(f"the baseline {path} does not exist; name a result.json, the folder of a run or of runs")
    if path.is_file() or (path / "result.json").exists():
        source = path if path.is_file() else path / "result.json"
        return _in_result(source, read_result(source), fingerprint, _STABLE, named=True)
    why = f"no result in {path} that passed has the same fingerprint"
    for source, result in results_below(path):
        if source.parent.resolve() == own.resolve():
            continue
        found, _ = _in_result(source, result, fingerprint, _PASSED, named=False)
        if found is not None:
            return found, ""
    return None, why


def _in_result(
    source: Path,
    result: RunResult,
    fingerprint: Mapping[str, str],
    accepted: frozenset[Verdict],
    *,
    named: bool,
) -> tuple[Baseline | None, str]:
    scenarios = [entry for entry in result.scenarios if entry.name == fingerprint.get("scenario")]
    if not scenarios:
        names = ", ".join(entry.name for entry in result.scenarios) or "none"
        return None, f"{source} has no scenario {fingerprint.get('scenario')} (it has: {names})"
    entry = scenarios[-1]
    theirs = entry.fingerprint
    free = may_differ(theirs, fingerprint) if named else frozenset()
    differing = []
    for key in sorted((theirs.keys() | fingerprint.keys()) - free):
        if theirs.get(key) != fingerprint.get(key):
            there, here = difference(theirs.get(key, "unknown"), fingerprint.get(key, "unknown"))
            differing.append(f"{key} {there} there, {here} here")
    if differing:
        return None, f"{source} is not comparable: {'; '.join(differing)}"
    pdr = entry.measurand("PDR")
    if entry.verdict not in accepted or pdr is None:
        return None, f"{source} holds no stable PDR of this scenario (it was {entry.verdict})"
    if len(pdr.samples) < 2:
        return None, f"{source} has {len(pdr.samples)} repeats; a comparison needs two or more"
    return Baseline(str(source), pdr.samples, theirs), ""
