"""The comparison of a PDR with its baseline's: a change with its interval, against a tolerance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pdrgate.errors import DataError, UsageError
from pdrgate.gate.fingerprint import KERNEL, difference
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.stats.intervals import Change, change_interval, mean, paired_change_interval
from pdrgate.units import Rate

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a result is compared with: the PDR of each repeat, packets/s, and where it comes from."""

    source: str
    per_run: tuple[float, ...]
    fingerprint: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The change of the mean PDR, (candidate - baseline) / baseline, with its interval."""

    baseline: str
    tolerance: float
    change: float
    lower: float
    upper: float
    confidence: float = CONFIDENCE
    """Of the interval."""
    differs: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    """Fingerprint entries that are not equal, baseline's value first: what this comparison is about."""

    def besides_the_kernel(self) -> str:
        """A sentence on what else is not equal, empty when nothing is: a change of PDR may come of that."""
        clauses = []
        for key, (theirs, ours) in self.differs.items():
            if key not in KERNEL:
                there, here = difference(theirs or "not told", ours or "not told")
                clauses.append(f"{key} {there} in the baseline, {here} here")
        return f"besides the kernel these differ: {'; '.join(clauses)}" if clauses else ""

    def to_dict(self) -> dict[str, object]:
        """The comparison as result.json has it."""
        return {
            "baseline": self.baseline,
            "tolerance": self.tolerance,
            "change": self.change,
            "lower": self.lower,
            "upper": self.upper,
            "confidence": self.confidence,
            "differs": {key: list(values) for key, values in self.differs.items()},
        }


def compare(
    candidate: Sequence[float], baseline: Baseline, tolerance: float, fingerprint: Mapping[str, str] | None = None
) -> tuple[Comparison, Judgement]:
    """Compare per-run PDRs (packets/s) with a baseline's, allowing ``tolerance`` as relative loss of PDR.

    PASS when the whole interval lies above -tolerance, REGRESSION when all of it lies below, IMPROVEMENT when all of it
    lies above +tolerance, and INCONCLUSIVE when it spans -tolerance: then neither is shown.

    Raises:
        UsageError: the tolerance is not in [0, 1).
        DataError: a side has fewer than two repeats, or the baseline scatters so much that no change can be told.
    """
    _check_tolerance(tolerance)
    try:
        change = change_interval(candidate, baseline.per_run, CONFIDENCE)
    except ValueError as error:
        raise DataError(f"cannot compare with {baseline.source}: {error}") from error
    return _judged(change, candidate, baseline, tolerance, fingerprint, CONFIDENCE)


def compare_pairs(
    candidate: Sequence[float],
    baseline: Baseline,
    tolerance: float,
    fingerprint: Mapping[str, str] | None = None,
    confidence: float = CONFIDENCE,
) -> tuple[Comparison, Judgement]:
    """`compare` for PDRs that were measured in pairs, one boot of each build in turn; see `paired_change_interval`."""
    _check_tolerance(tolerance)
    try:
        change = paired_change_interval(candidate, baseline.per_run, confidence)
    except ValueError as error:
        raise DataError(f"cannot compare with {baseline.source}: {error}") from error
    return _judged(change, candidate, baseline, tolerance, fingerprint, confidence)


def _check_tolerance(tolerance: float) -> None:
    if not 0 <= tolerance < 1:
        raise UsageError(f"a tolerance of {tolerance:.1%} has no meaning; use 0% or more, and less than 100%")


def _judged(
    change: Change,
    candidate: Sequence[float],
    baseline: Baseline,
    tolerance: float,
    fingerprint: Mapping[str, str] | None,
    confidence: float,
) -> tuple[Comparison, Judgement]:
    low, high = change.interval.low, change.interval.high
    own = fingerprint or baseline.fingerprint
    keys = [*baseline.fingerprint, *(key for key in own if key not in baseline.fingerprint)]
    differs = {
        key: (baseline.fingerprint.get(key), own.get(key))
        for key in keys
        if baseline.fingerprint.get(key) != own.get(key)
    }
    comparison = Comparison(baseline.source, tolerance, change.estimate, low, high, confidence, differs)
    numbers = (
        f"PDR {Rate(mean(candidate))} against {Rate(mean(baseline.per_run))}, change {change.estimate:+.1%} "
        f"({low:+.1%} to {high:+.1%} at {confidence:.0%} confidence), tolerance {tolerance:.1%}"
    )
    if high < -tolerance:
        return comparison, Judgement(Verdict.REGRESSION, f"slower: {numbers}")
    if low > tolerance:
        return comparison, Judgement(Verdict.IMPROVEMENT, f"faster: {numbers}")
    if low >= -tolerance:
        return comparison, Judgement(Verdict.PASS, f"not slower: {numbers}")
    return comparison, Judgement(
        Verdict.INCONCLUSIVE, f"the interval spans the tolerance: {numbers}; repeat more often or on a quieter machine"
    )
