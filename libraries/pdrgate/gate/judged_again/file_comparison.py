"""The comparison of two sets of trial files, without a testbed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from pdrgate.gate.comparisons.pairs.comparison_task import SIDES
from pdrgate.gate.comparisons.pairs.pairs_shape import BuildsCurves, shape_of
from pdrgate.gate.judged_again.sets_of_trials import StoredSet, WantedSet, check_comparable, goal_of_sets, stored_set
from pdrgate.gate.scenarios.replicate_samples import Measurands
from pdrgate.gate.scenarios.transfer_run import measured_transfers
from pdrgate.gate.verdicts.change_verdict import (
    check_tolerance,
    comparison,
    judged,
    remedy_of_boots,
    told,
    unpaired_changes,
)
from pdrgate.gate.verdicts.noise_floor import noise_floor
from pdrgate.measurands import (
    LATENCY,
    OF_TRANSFERS,
    OF_TRIALS,
    Description,
    LatencyTrials,
    PartialDropRate,
    SaturationThroughput,
    Setting,
    compared_of,
    replicate_of,
)
from pdrgate.measurands import (
    TolerancesAsked as AskedTolerances,
)
from pdrgate.measurands.counted.cost import with_pair_beside
from pdrgate.measurands.rates.starvation import LeastDelivered
from pdrgate.record.phase import OF_CURVE, Phase
from pdrgate.record.trial import Trial, by_boot
from pdrgate.replication import NoiseFloor, PairsRule, Samples
from pdrgate.results.fingerprint import conditions
from pdrgate.results.model import ChangeResult, ComparisonResult, Side
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.search.goals import PDR_GOAL
from pdrgate.stability import StabilityVerdict as Stability
from pdrgate.stability import assess
from pdrgate.stability.curve import LoadLossCurve, first_past
from pdrgate.stability.series_checks import assess_transfers
from pdrgate.stability.trial_files import Experiment
from pdrgate.stats.intervals import mean
from pdrgate.values.errors import DataError

if TYPE_CHECKING:
    from pdrgate.history.database.experience import Experience

_Values = dict[str, dict[int, float]]


@dataclass(frozen=True, slots=True)
class _Set:
    """A side's trials, assessed."""

    stored: StoredSet
    failure: Judgement | None
    """Why they do not come to one number; None when they do."""
    values: _Values
    """Samples by measurand, each with its pair of boots where there are pairs, else counted from 1."""
    paired: bool
    trials: tuple[Trial, ...] = ()

    @property
    def path(self) -> Path:
        """The path as a person named it."""
        return self.stored.path

    @property
    def boots(self) -> int:
        """How many boots the samples are of."""
        if self.paired:
            return max(map(len, self.values.values()))
        return len(by_boot(self.trials)) or 1

    @property
    def inexact(self) -> bool:
        """Whether a processor counted what packets cost, see `pdrgate.observers.watching.Counting`."""
        return "counted" in self.fingerprint

    @property
    def fingerprint(self) -> Mapping[str, str]:
        """What the first trial was made under, as its run has it; empty where it lies in no run. Raises DataError."""
        return self.stored.fingerprint(self.trials[0])

    @property
    def compared(self) -> tuple[Description, ...]:
        """What is measured, the one that a run is about first."""
        return compared_of(OF_TRANSFERS if self.stored.closed_loop else OF_TRIALS)

    @property
    def needed(self) -> frozenset[str]:
        """Measurands that pairs cannot be judged without."""
        return frozenset(one.name for one in self.compared if one.essential)


def compare_files(
    baseline: Path,
    candidate: Path,
    tolerance: float,
    plr_threshold: float | None = None,
    report: Callable[[str], None] = lambda sentence: None,
    *,
    asked: WantedSet = WantedSet(),  # noqa: B008  # frozen
    experience: Experience | None = None,
    boots_deviate: float | None = None,
) -> tuple[ComparisonResult | None, Judgement]:
    """Assess both sides, then compare their PDRs and saturation throughputs, or what transfers come to.

    Trials of a build comparison have two builds. Those of the baseline are taken from the first path and those of the
    candidate from the second. Given twice, such a run is judged again, pair by pair. Boots of two runs are no pairs:
    they were not measured side by side. A change that can be computed is reported also where a side is not stable.

    Args:
        plr_threshold: the loss ratio that makes the PDR; None: what the trials were measured for.
        report: gets a sentence on what a reader should know of the files, see `expand` and `check_comparable`.
        asked: which of several is meant.
        experience: keeps what boots deviate by, for trials whose run lies around them.
        boots_deviate: what it is stated to be.

    Raises:
        DataError: a file holds no trials, several sets of them of which none was chosen, or trials of another question.
        UsageError: the tolerance has no meaning.
    """
    check_tolerance(tolerance)
    stored = stored_set(baseline, asked, report), stored_set(candidate, asked, report)
    check_comparable(*stored, asked, report, any_goal=plr_threshold is not None)
    loss_ratio = goal_of_sets(stored) if plr_threshold is None else plr_threshold
    first, second = (
        _transfers_of(one, side) if one.closed_loop else _trials_of(one, side, loss_ratio, other.of(opposite))
        for one, side, other, opposite in zip(stored, SIDES, stored[::-1], SIDES[::-1], strict=True)
    )
    failure = next((one.failure for one in (first, second) if one.failure is not None), None)
    main, *_ = first.compared
    pairs = sorted(first.values[main.name].keys() & second.values[main.name].keys())
    one_run = first.paired and second.paired and stored[0].trials == stored[1].trials
    paired = one_run and len(pairs) > 1
    accepted: AskedTolerances = {"tolerance": tolerance}
    if first.inexact or second.inexact:
        accepted = {**accepted, "cost_tolerance": None}
    judged_here = [one for one in first.compared if one.judged(accepted)]
    samples = [_samples(one, first, second, accepted, pairs if paired else None) for one in judged_here]
    known = [one for one in samples if len(one.baseline) > 1 and len(one.candidate) > 1]
    paired = paired and {one.measurand for one in known} >= first.needed
    if not known:
        if failure is not None:
            return None, failure
        few = min((first, second), key=lambda one: len(one.values[main.name]))
        count = len(few.values[main.name])
        of = "transfers" if few.stored.closed_loop else "a saturated load"
        raise DataError(f"{few.path} has {count} repeats of {of}; a comparison needs two or more")
    floor = NoiseFloor()
    if paired:
        changes, failure = _by_pairs(known, first, second, loss_ratio)
    else:
        if boots_deviate is not None:
            floor = NoiseFloor.stated([one.measurand for one in known], boots_deviate)
        else:
            floor = _floor(experience, first, second)
        # What boots of one comparison deviate by is that of some minutes, and says nothing of those of another day.
        baseline_tells = one_run or not first.paired
        changes = unpaired_changes(
            known, str(baseline), floor, (second.boots, first.boots), baseline_tells=baseline_tells
        )
    found = comparison(
        changes, str(baseline), {}, pairs=len(pairs) if paired else 0, why_not=failure.reason if failure else ""
    )
    if failure is not None:
        numbers = "; ".join(told(change) for change in changes)
        return found, Judgement(failure.verdict, f"{failure.reason}; not accepted therefore: {numbers}")
    remedy = "" if paired else remedy_of_boots(changes, floor, "")
    return found, judged(changes).remarked(remedy)


def _floor(experience: Experience | None, first: _Set, second: _Set) -> NoiseFloor:
    """What is known of the testbed that both sets are of."""
    own = [one.fingerprint for one in (first, second)]
    one_testbed = conditions(own[0]) == conditions(own[1])
    return noise_floor(experience, own[1]) if one_testbed else NoiseFloor()


def _by_pairs(
    samples: Sequence[Samples], first: _Set, second: _Set, loss_ratio: float
) -> tuple[tuple[ChangeResult, ...], Judgement | None]:
    """The changes, and why they are not accepted: as a comparison of builds has them."""
    try:
        standing = PairsRule().standing(samples, ended=True)
    except ValueError as error:
        raise DataError(f"cannot compare {second.path} pair by pair with {first.path}: {error}") from error
    of_boots: dict[str, Mapping[Side, tuple[float, ...]]] = {
        one.measurand: {"baseline": one.baseline, "candidate": one.candidate} for one in samples
    }
    trials: dict[Side, Sequence[Trial]] = dict(zip(SIDES, (first.trials, second.trials), strict=True))
    shape = shape_of(
        first.compared, of_boots,
        trials=None if first.stored.closed_loop else trials,
        curves=None if first.stored.closed_loop else BuildsCurves(loss_ratio, "trials of"),
    )  # fmt: skip
    return PairsRule().told(standing, samples), shape.veto(
        standing, {side: str(one.path) for side, one in zip(SIDES, (first, second), strict=True)}
    )


def _samples(
    measurand: Description,
    first: _Set,
    second: _Set,
    asked: AskedTolerances,
    pairs: Sequence[int] | None,
) -> Samples:
    def of(one: _Set) -> tuple[float, ...]:
        values = one.values[measurand.name]
        if pairs is not None and not values.keys() >= set(pairs):
            return ()  # not everything is measured everywhere
        return tuple(values[number] for number in (sorted(values) if pairs is None else pairs))

    delivered = bool(first.values.get(LeastDelivered.name))
    accepted = measurand.tolerance.accepted(asked, delivered=delivered)
    return Samples(measurand.name, measurand.unit, measurand.better, accepted, of(first), of(second))


def _transfers_of(stored: StoredSet, side: Side) -> _Set:
    path, own = stored.path, stored.of(side)
    paired = any(one.belonging.pair for one in own)
    assessed = assess_transfers(Experiment(str(path), tuple(own)))
    failure = None
    if assessed.verdict is not Stability.STABLE and not paired:  # in pairs, boots show it
        failure = Judgement(Verdict(assessed.verdict.value), f"{path}: {assessed.reason}")
    values: _Values = {one.about.name: {} for one in OF_TRANSFERS}
    for count, ((_, pair, _), made) in enumerate(replicate_of(own).items(), 1):
        repeats = [one for one in made if one.occasion.phase == Phase.REPEAT]
        if not repeats:
            continue
        duration = median(one.intended_duration for one in repeats)
        for measurand in measured_transfers(repeats[0].transfer.window, duration, len(repeats)):
            if (value := measurand.value(made)) is not None:
                values[measurand.name][pair or count] = value
    return _Set(stored, failure, values, paired, tuple(own))


def _trials_of(stored: StoredSet, side: Side, plr_threshold: float, others: Sequence[Trial]) -> _Set:
    """One side, assessed; ``others`` are the other side's trials."""
    path, trials = stored.path, stored.of(side)
    repeats = [one for one in trials if one.occasion.phase in OF_CURVE] or [one for one in trials if one.intended_load]
    if not repeats:
        raise DataError(f"{path}: in none of its trials was anything sent; name a file of others")
    paired = any(trial.belonging.pair for trial in trials)
    values = _by_replicate(trials, plr_threshold, others)
    pdrs = tuple(values[PartialDropRate.name].values())
    found = assess(
        repeats, plr_threshold=plr_threshold, source=str(path), over_time=not paired, pdr=mean(pdrs) if pdrs else None
    )
    if not any(values.values()):
        values = values_by_run(found.curve, plr_threshold)
    failure = None
    if found.verdict is not Stability.STABLE:
        failure = Judgement(Verdict(found.verdict.value), f"{path}: {found.reason}")
    return _Set(stored, failure, values, paired, tuple(trials))


def values_by_run(curve: LoadLossCurve, plr_threshold: float) -> _Values:
    """Samples of files without replicates (PASTRAMI's, older ones): those of the curve, by measurand and run."""
    past = first_past(curve.steady_plrs, plr_threshold)
    beyond = curve.points[past + 1].throughputs if past is not None and past + 1 < len(curve.points) else ()
    pdrs = curve.pdr_per_run(plr_threshold) if beyond else ()
    return {
        **{one.about.name: {} for one in OF_TRIALS},
        PartialDropRate.name: dict(enumerate(pdrs, 1)), SaturationThroughput.name: dict(enumerate(beyond, 1)),
    }  # fmt: skip


def _by_replicate(trials: Sequence[Trial], plr_threshold: float, others: Sequence[Trial]) -> _Values:
    values: _Values = {one.about.name: {} for one in OF_TRIALS}
    for count, ((_, pair, _), own) in enumerate(replicate_of(trials).items(), 1):
        loads = [trial.intended_load for trial in own if trial.occasion.phase == Phase.REPEAT] or [own[0].intended_load]
        measurands = Measurands.of(
            Setting(
                loads=tuple(loads), duration=own[0].intended_duration, loss_ratio=plr_threshold, top_trials=0,
                width=PDR_GOAL.width, past=_loads_of(own, Phase.PAST), overloads=_loads_of(own, Phase.OVERLOAD),
            ),
            LatencyTrials() if any(trial.occasion.phase in LATENCY for trial in own) else None,
        )  # fmt: skip
        for measurand in measurands.all:
            value = measurand.value(with_pair_beside(own, others))
            if value is not None:
                values[measurand.name][pair or count] = value
    return values


def _loads_of(trials: Sequence[Trial], phase: Phase) -> tuple[float, ...]:
    return tuple(sorted({trial.intended_load for trial in trials if trial.occasion.phase == phase}))
