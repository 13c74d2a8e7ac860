"""The comparison of two sets of trial files, without a testbed."""

from __future__ import annotations

from pathlib import Path

from pdrgate.errors import DataError
from pdrgate.gate.compare import Baseline, Comparison, compare
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.stability import Assessment, assess, expand, read_experiments
from pdrgate.stability import Verdict as Stability


def compare_files(
    baseline: Path, candidate: Path, tolerance: float, plr_threshold: float
) -> tuple[Comparison | None, Judgement]:
    """Assess both sides, then compare their per-run PDRs; no comparison when a side is not stable.

    Raises:
        DataError: a file holds no trials, or trials of different scenarios.
        UsageError: the tolerance has no meaning.
    """
    sides = [_assessed(path, plr_threshold) for path in (baseline, candidate)]
    for path, assessment in zip((baseline, candidate), sides, strict=True):
        if assessment.verdict is not Stability.STABLE:
            return None, Judgement(Verdict(assessment.verdict.value), f"{path}: {assessment.reason}")
    per_run = [assessment.curve.saturated_pdr_per_run(plr_threshold) for assessment in sides]
    for path, values in zip((baseline, candidate), per_run, strict=True):
        if len(values) < 2:
            raise DataError(f"{path} has {len(values)} repeats of a saturated load; a comparison needs two or more")
    return compare(per_run[1], Baseline(str(baseline), per_run[0], {}), tolerance)


def _assessed(path: Path, plr_threshold: float) -> Assessment:
    experiments = [experiment for file in expand([path]) for experiment in read_experiments(file)]
    scenarios = sorted({experiment.scenario for experiment in experiments})
    if len(scenarios) > 1:
        raise DataError(
            f"{path} holds trials of {len(scenarios)} scenarios ({', '.join(scenarios)}); name one file each"
        )
    trials = [trial for experiment in experiments for trial in experiment.trials]
    return assess(trials, plr_threshold=plr_threshold, source=str(path))
