"""The comparison of two sets of trial files, without a testbed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pdrgate.errors import DataError
from pdrgate.gate.judging import check_tolerance, compare, comparison, judged, remedy_of_boots, told, tolerance_of
from pdrgate.gate.noise import noise_floor
from pdrgate.gate.options import COST_TOLERANCE, LATENCY_TOLERANCE
from pdrgate.gate.record import read_fingerprints
from pdrgate.gate.replicate import MEASURANDS, Compared, Measurands
from pdrgate.gate.shape import shape_of
from pdrgate.history.noise import NoiseStore
from pdrgate.measurands import (
    LATENCY,
    Cost,
    LatencyTrials,
    PartialDropRate,
    SaturationThroughput,
    replicate_of,
)
from pdrgate.measurands.measurand import OVERLOAD
from pdrgate.replication import NoiseFloor, PairsRule, Samples
from pdrgate.results.fingerprint import conditions
from pdrgate.results.model import ChangeResult, ComparisonResult, Side
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.search.goals import PDR
from pdrgate.stability import Assessment, Reading, assess, expand, read_experiments
from pdrgate.stability import Verdict as Stability
from pdrgate.stability.curve import LoadLossCurve, first_past
from pdrgate.stats.intervals import mean
from pdrgate.trial import Trial, by_boot

_SIDES: tuple[Side, Side] = ("baseline", "candidate")
_Values = dict[str, dict[int, float]]


@dataclass(frozen=True, slots=True)
class _Set:
    """One side's trials, assessed."""

    path: Path
    assessment: Assessment
    values: _Values
    """By measurand, the samples: by pair of boots where there are pairs, else counted from 1."""
    paired: bool
    trials: tuple[Trial, ...]

    @property
    def boots(self) -> int:
        """That the trials are of."""
        return len(by_boot(self.trials)) or 1

    @property
    def inexact(self) -> bool:
        """Whether a processor counted what packets cost, see `pdrgate.testbeds.protocol.Counting`."""
        return "counted" in self.fingerprint

    @property
    def fingerprint(self) -> Mapping[str, str]:
        """What the first trial was made under, as its run has it; empty where it lies in no run. Raises DataError."""
        folder = self.path if self.path.is_dir() else self.path.parent
        return read_fingerprints(folder).get(self.trials[0].fingerprint, {})


def compare_files(
    baseline: Path,
    candidate: Path,
    tolerance: float,
    plr_threshold: float,
    told_of: Callable[[str], None] = lambda sentence: None,
    *,
    noise: NoiseStore | None = None,
    boots_deviate: float | None = None,
) -> tuple[ComparisonResult | None, Judgement]:
    """Assess both sides, then compare their PDRs and saturation throughputs.

    Of the trials of a build comparison, which has two builds, those of the baseline are taken from the first path and
    those of the candidate from the second: given twice, such a run is judged again, pair by pair. A change that can be
    computed is told also where a side is not stable.

    Args:
        told_of: gets a sentence on each file that is left out, see `expand`.
        noise: where what boots deviate by is kept, for trials whose run lies around them.
        boots_deviate: what it is stated to be.

    Raises:
        DataError: a file holds no trials, or trials of different scenarios.
        UsageError: the tolerance has no meaning.
    """
    check_tolerance(tolerance)
    first, second = (
        _read(path, side, plr_threshold, told_of) for path, side in ((baseline, _SIDES[0]), (candidate, _SIDES[1]))
    )
    unstable = next((one for one in (first, second) if one.assessment.verdict is not Stability.STABLE), None)
    failure = None
    if unstable is not None:
        failure = Judgement(
            Verdict(unstable.assessment.verdict.value), f"{unstable.path}: {unstable.assessment.reason}"
        )
    pairs = sorted(first.values[PartialDropRate.name].keys() & second.values[PartialDropRate.name].keys())
    paired = first.paired and second.paired and len(pairs) > 1
    judged_here = [one for one in MEASURANDS if one is not Cost or not (first.inexact or second.inexact)]
    samples = [_samples(one, first, second, tolerance, pairs if paired else None) for one in judged_here]
    known = [one for one in samples if len(one.baseline) > 1 and len(one.candidate) > 1]
    paired = paired and {one.measurand for one in known} >= {PartialDropRate.name, SaturationThroughput.name}
    if not known:
        if failure is not None:
            return None, failure
        few = min((first, second), key=lambda one: len(one.values[PartialDropRate.name]))
        count = len(few.values[PartialDropRate.name])
        raise DataError(f"{few.path} has {count} repeats of a saturated load; a comparison needs two or more")
    floor = NoiseFloor()
    if paired:
        changes, failure = _by_pairs(known, first, second, plr_threshold)
    else:
        if boots_deviate is not None:
            floor = NoiseFloor.stated([one.measurand for one in known], boots_deviate)
        else:
            floor = _floor(noise, first, second)
        changes = compare(known, str(baseline), floor, (second.boots, first.boots))
    found = comparison(
        changes, str(baseline), {}, pairs=len(pairs) if paired else 0, why_not=failure.reason if failure else ""
    )
    if failure is not None:
        numbers = "; ".join(told(change) for change in changes)
        return found, Judgement(failure.verdict, f"{failure.reason}; not accepted therefore: {numbers}")
    remedy = "" if paired else remedy_of_boots(changes, floor, "")
    return found, judged(changes).remarked(remedy)


def _floor(noise: NoiseStore | None, first: _Set, second: _Set) -> NoiseFloor:
    """What is known of the testbed that both sets are of."""
    own = [one.fingerprint for one in (first, second)]
    one_testbed = conditions(own[0]) == conditions(own[1])
    return noise_floor((noise,), own[1]) if noise is not None and one_testbed else NoiseFloor()


def _by_pairs(
    samples: Sequence[Samples], first: _Set, second: _Set, plr_threshold: float
) -> tuple[tuple[ChangeResult, ...], Judgement | None]:
    """The changes, and why they are not accepted: as a comparison of builds has them."""
    try:
        standing = PairsRule().standing(samples, ended=True)
    except ValueError as error:
        raise DataError(f"cannot compare {second.path} pair by pair with {first.path}: {error}") from error
    shape = shape_of(
        dict(zip(_SIDES, (first.trials, second.trials), strict=True)),
        {one.measurand: {"baseline": one.baseline, "candidate": one.candidate} for one in samples},
        reading=Reading.STRICT, loss_ratio=plr_threshold, scenario="trials of",
    )  # fmt: skip
    return PairsRule().told(standing, samples), shape.veto(
        standing, {side: str(one.path) for side, one in zip(_SIDES, (first, second), strict=True)}
    )


def _samples(
    measurand: Compared,
    first: _Set,
    second: _Set,
    tolerance: float,
    pairs: Sequence[int] | None,
) -> Samples:
    def of(one: _Set) -> tuple[float, ...]:
        values = one.values[measurand.name]
        if pairs is not None and not values.keys() >= set(pairs):
            return ()  # not everything is measured everywhere
        return tuple(values[number] for number in (sorted(values) if pairs is None else pairs))

    accepted = tolerance_of(measurand.name, tolerance, COST_TOLERANCE, LATENCY_TOLERANCE)
    return Samples(measurand.name, measurand.unit, measurand.better, accepted, of(first), of(second))


def _read(path: Path, side: Side, plr_threshold: float, told_of: Callable[[str], None]) -> _Set:
    experiments = [experiment for file in expand([path], told_of) for experiment in read_experiments(file, whole=True)]
    scenarios = sorted({experiment.scenario for experiment in experiments})
    if len(scenarios) > 1:
        raise DataError(
            f"{path} holds trials of {len(scenarios)} scenarios ({', '.join(scenarios)}); name one file each"
        )
    trials = [trial for experiment in experiments for trial in experiment.trials]
    if any(trial.side for trial in trials):
        trials = [trial for trial in trials if trial.side == side]
        if not trials:
            raise DataError(f"{path} holds trials of a build comparison, and none of its {side}; name the whole file")
    repeats = [trial for trial in trials if trial.phase == "repeat"] or [
        trial for trial in trials if trial.intended_load
    ]
    paired = any(trial.pair for trial in trials)
    values = _by_replicate(trials, plr_threshold)
    pdrs = tuple(values[PartialDropRate.name].values())
    found = assess(
        repeats, plr_threshold=plr_threshold, source=str(path), over_time=not paired, pdr=mean(pdrs) if pdrs else None
    )
    if not any(values.values()):
        values = values_by_run(found.curve, plr_threshold)
    return _Set(path, found, values, paired, tuple(trials))


def values_by_run(curve: LoadLossCurve, plr_threshold: float) -> _Values:
    """Samples of files without replicates (PASTRAMI's, older ones): those of the curve, by measurand and run."""
    past = first_past(curve.steady_plrs, plr_threshold)
    beyond = curve.points[past + 1].throughputs if past is not None and past + 1 < len(curve.points) else ()
    pdrs = curve.pdr_per_run(plr_threshold) if beyond else ()
    return {
        **{one.name: {} for one in MEASURANDS},
        PartialDropRate.name: dict(enumerate(pdrs, 1)), SaturationThroughput.name: dict(enumerate(beyond, 1)),
    }  # fmt: skip


def _by_replicate(trials: Sequence[Trial], plr_threshold: float) -> _Values:
    values: _Values = {one.name: {} for one in MEASURANDS}
    for count, ((_, pair, _), own) in enumerate(replicate_of(trials).items(), 1):
        loads = [trial.intended_load for trial in own if trial.phase == "repeat"] or [own[0].intended_load]
        goal = dataclasses.replace(PDR, loss_ratio=plr_threshold)
        measurands = Measurands.at(
            loads, goal, own[0].intended_duration, top_trials=0, width=goal.width,
            overloads=sorted({trial.intended_load for trial in own if trial.phase == OVERLOAD}),
            latency=LatencyTrials() if any(trial.phase in LATENCY for trial in own) else None,
        )  # fmt: skip
        for measurand in measurands.all:
            value = measurand.value(own)
            if value is not None:
                values[measurand.name][pair or count] = value
    return values
