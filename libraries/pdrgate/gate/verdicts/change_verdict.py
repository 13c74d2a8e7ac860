"""Changes with their intervals become a verdict and the sentence that gives its reason."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pdrgate.gate.run.options import Options
from pdrgate.gate.verdicts.build_pair import BuildPair
from pdrgate.gate.verdicts.packet_cost import at_odds, notice_of_calls, percent
from pdrgate.measurands import DESCRIPTIONS, Description, TolerancesAsked, described, told_once, unit_of
from pdrgate.replication import NoiseFloor, Samples
from pdrgate.replication.noise import DAYS, KNOWN
from pdrgate.replication.samples import gravest_change
from pdrgate.results.model import (
    Better,
    ChangeResult,
    ComparisonResult,
    FunctionChange,
    MeasurandResult,
    SpikeInResult,
)
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.stats.intervals import mean, sample_deviation, t_interval
from pdrgate.stats.pooled import Deviation
from pdrgate.values.errors import EXIT_FAULT, DataError, UsageError

CHANGE_CONFIDENCE = 0.95
_MANY = math.log(1000)
_LEADS = {
    Verdict.REGRESSION: "slower",
    Verdict.IMPROVEMENT: "faster",
    Verdict.PASS: "not slower",
    Verdict.INCONCLUSIVE: "the interval spans the tolerance",
    Verdict.NO_BASELINE: "not judged",
}


def tolerances_asked(options: Options, tolerance: float, cost: float | None) -> TolerancesAsked:
    """What a run accepts, by the option that says so.

    Args:
        tolerance: that a test asks for.
        cost: of the cost of a packet; None where it is report-only.
    """
    named = {one.tolerance.option for one in DESCRIPTIONS if one.tolerance.option}
    return {name: getattr(options, name) for name in named} | {"tolerance": tolerance, "cost_tolerance": cost}


def check_tolerance(tolerance: float) -> None:
    """Raises UsageError when a tolerance is not in [0, 1)."""
    if not 0 <= tolerance < 1:
        raise UsageError(f"a tolerance of {tolerance:.1%} has no meaning; use 0% or more, and less than 100%")


def unpaired_changes(
    samples: Sequence[Samples],
    source: str,
    floor: NoiseFloor | None = None,
    boots: tuple[int, int] = (1, 1),
    *,
    baseline_tells: bool = True,
) -> tuple[ChangeResult, ...]:
    """The changes of samples that were not taken in pairs, at 95 % for all of them together; see `Samples.change`.

    Where boots were seen to dip, one that is slower may be such a boot, and is no REGRESSION.

    Args:
        floor: what is known of the testbed's noise.
        boots: that the samples of candidate and baseline are of.
        baseline_tells: whether the deviation of boots is taken from the baseline's, where the floor has none.

    Raises:
        DataError: a side has fewer than two samples, or a mean that is not positive.
    """
    each = 1.0 - (1.0 - CHANGE_CONFIDENCE) / len(samples)
    noise = {one.measurand: (floor or NoiseFloor()).of(one.measurand) for one in samples}
    try:
        own = {one.measurand: _of_boots(one, boots[1]) for one in samples if baseline_tells}
        changes = [
            one.change(each, noise[one.measurand].known_boots or own.get(one.measurand), boots) for one in samples
        ]
    except ValueError as error:
        raise DataError(f"cannot compare with {source}: {error}") from error
    return tuple(
        replace(one, verdict=Verdict.INCONCLUSIVE)
        if one.verdict is Verdict.REGRESSION and noise[one.measurand].dips
        else one
        for one in changes
    )


def _of_boots(samples: Samples, boots: int) -> Deviation | None:
    """Deviation of the boots of a baseline, where it has a sample of each, and enough of them."""
    own = samples.baseline
    if len(own) != boots or boots - 1 < KNOWN or min(own) <= 0:
        return None
    return Deviation(sample_deviation([math.log(value) for value in own]), boots - 1.0)


def remedy_of_boots(changes: Sequence[ChangeResult], floor: NoiseFloor, testbed: str) -> str:
    """The remedy where unpaired boots decided nothing, in words; empty where they decided.

    Args:
        testbed: the arguments of ``pdrgate calibrate``.
    """
    decisive = gravest_change(changes)
    if decisive.evidence is not None or decisive.verdict not in (Verdict.INCONCLUSIVE, Verdict.NO_BASELINE):
        return ""
    if decisive.boots_deviate is None:
        seen = floor.of(decisive.measurand).days_seen
        return (
            f"unpaired boots need the deviation between days, which is not known on this testbed ({seen} of {DAYS} "
            "days seen of one build); boot the baseline's build beside this one (--kernel and --against), or measure "
            f"on {DAYS} days: {f'pdrgate calibrate {testbed}'.rstrip()}"
        )
    noise = floor.of(decisive.measurand)
    dips = f"{noise.dips} of {noise.seen} boots dip here, and " if noise.dips else ""
    return (
        f"{dips}boots deviate by {decisive.boots_deviate:.2%} here: compare pairs of boots, with --kernel or --bpf and "
        "--against"
    )


def judged(changes: Sequence[ChangeResult], functions: Sequence[FunctionChange] = ()) -> Judgement:
    """The verdict of the gravest change, with the numbers of all of them, and what is noticed besides.

    Args:
        functions: where the cost of a packet changed.
    """
    changes = told_once(changes)
    decisive = gravest_change(changes)
    if decisive.verdict in (Verdict.PASS, Verdict.NO_BASELINE):
        # Where nothing decides against a build, what the run is about comes first.
        alike = (
            changes if decisive.verdict is Verdict.PASS else [one for one in changes if one.verdict is decisive.verdict]
        )
        ranked = [[one for one in alike if _of(one).rank == rank] for rank in range(3)]
        decisive = gravest_change(next(filter(None, ranked)))
    others = [change for change in changes if change is not decisive]
    sentence = _of(decisive).sentence
    clauses = [_decisive(decisive, functions)]
    if sentence is not None and sentence.whole:
        clauses += [f"{one.measurand} {percent(one.change)}" for one in others]
    else:
        clauses += [told(one, functions) for one in others]
    clauses.insert(1, _evidence_in_words(decisive))
    if decisive.verdict is Verdict.PASS:
        clauses.append(_small_parts(decisive, functions))
    notice = _noticed(functions, changes)
    first = decisive.verdict in (Verdict.PASS, Verdict.NO_BASELINE)  # else the verdict has more to say
    clauses.insert(0 if first else len(clauses), notice)
    reason = "; ".join(filter(None, [*clauses, at_odds(changes)]))
    if decisive.verdict is Verdict.INCONCLUSIVE and decisive.evidence is not None and not _is_the_tolerance(decisive):
        reason += "; repeat more often or on a quieter machine"
    return Judgement(decisive.verdict, reason)


def _noticed(functions: Sequence[FunctionChange], changes: Sequence[ChangeResult]) -> str:
    notice = _notice(functions, changes)
    return f"notice: {notice}" if notice else ""


def _notice(functions: Sequence[FunctionChange], changes: Sequence[ChangeResult]) -> str:
    """What surely changed of a packet. What is called for a replacement depends on how long that takes."""
    return notice_of_calls(functions) if _of(changes[0]).each == "packet" else ""


def proven(found: Judgement, spike_in: SpikeInResult | None) -> Judgement:
    """A verdict as it stands after a slowdown was planted to see whether it is found.

    A PASS that could not have failed is none: the comparison is INCONCLUSIVE, and no fault of the build's. Where the
    machine kept that from being seen, its fault is the verdict. Where nothing could be planted, the PASS says so.
    """
    if spike_in is None or found.verdict is not Verdict.PASS:
        return found
    if spike_in.verdict is None or spike_in.slowdown is None:
        return found.remarked(f"no slowdown was planted: {spike_in.reason}")
    planted = f"a planted slowdown of {spike_in.slowdown:.1%}"
    changes = spike_in.comparison.changes if spike_in.comparison else ()
    after = f" after {spike_in.comparison.pairs} pairs" if spike_in.comparison else ""
    if spike_in.found:
        by = ", ".join(one.measurand for one in changes if one.verdict is Verdict.REGRESSION)
        return found.remarked(f"{planted} was found ({spike_in.verdict}{after}, by {by})")
    if spike_in.verdict.exit_code == EXIT_FAULT:
        unknown = f"whether this comparison could have failed is not known: with {planted}, {spike_in.reason}"
        return Judgement(spike_in.verdict, unknown).remarked(f"without it: {found.reason}")
    failed = f"this comparison could not have failed: {planted} was not found ({spike_in.verdict}{after})"
    return Judgement(Verdict.INCONCLUSIVE, failed).remarked(found.reason)


def _decisive(change: ChangeResult, functions: Sequence[FunctionChange]) -> str:
    """The change that decides, with what its own sentence does not say: whether it is for the worse, and by how far."""
    if change.verdict is Verdict.PASS:
        return f"{passed(change)}, tolerance {change.tolerance:.1%}"
    sentence, said = _of(change).sentence, told(change, functions)
    worse = change.verdict is Verdict.REGRESSION
    lead = "" if worse and sentence is not None and sentence.says_worse else f"{_lead(change)}: "
    tolerance = "" if worse and sentence is not None and sentence.whole else f", tolerance {change.tolerance:.1%}"
    return f"{lead}{said}{tolerance}"


def passed(change: ChangeResult) -> str:
    """A change within its tolerance in words, without a culprit: ``no change of the cost (-0.6 to +0.6 %)``, where none
    was seen."""
    about = _of(change)
    if about.parts is not None and change.lower <= 0 <= change.upper:
        return f"no change of the {about.name} ({100 * change.lower:+z.1f} to {100 * change.upper:+z.1f} %)"
    return f"{_lead(change)}: {told(change, ())}"


def _small_parts(change: ChangeResult, functions: Sequence[FunctionChange]) -> str:
    """The functions that a change within its tolerance lies in; empty where none was seen."""
    parts = _of(change).parts
    if parts is None or change.lower <= 0 <= change.upper:
        return ""
    return parts.within(change.candidate - change.baseline, functions)


def told(change: ChangeResult, functions: Sequence[FunctionChange] | None = None) -> str:
    """A change in words and numbers; see `Sentence.clause`."""
    return _of(change).told(change, functions)


def _of(change: ChangeResult) -> Description:
    return described(change.measurand, change.unit, change.better)


def _evidence_in_words(change: ChangeResult) -> str:
    """Why a change is decided whose interval spans the tolerance; of an undecided one, what could be decided."""
    evidence = change.evidence
    if evidence is None:
        return ""
    apart = f"{evidence.apart} of {evidence.pairs} pairs lie apart and count for less" if evidence.apart else ""
    if change.verdict is Verdict.INCONCLUSIVE:
        if _is_the_tolerance(change):
            return "the change is close to the tolerance, and no number of pairs decides its side; choose another"
        wanted = f", and some {evidence.needs} would decide a tolerance of {change.tolerance:.1%}"
        return "; ".join(
            filter(
                None,
                (
                    f"{evidence.pairs} pairs that deviate by {evidence.deviation:.1%} resolve a tolerance of some "
                    f"{evidence.resolves:.1%}{wanted if evidence.needs else ''}",
                    apart,
                ),
            )
        )
    return "; ".join(filter(None, (_odds_in_words(change), apart)))


def _odds_in_words(change: ChangeResult) -> str:
    """The odds of a change whose interval reaches beyond the tolerance that decides; else empty."""
    assert change.evidence is not None
    better = change.verdict is Verdict.IMPROVEMENT
    downwards = (change.better == "higher") is not better
    bound = -change.tolerance if downwards else change.tolerance
    if not change.lower < bound < change.upper:
        return ""
    if change.evidence.narrow:
        return "close to the tolerance; more pairs would change nothing that matters"
    log_odds = change.evidence.faster if better else change.evidence.slower
    twice = abs(math.expm1(2 * math.log1p(bound)))  # in logs, as the evidence is
    words = "unchanged", f"{'better' if better else 'worse'} by {twice:.1%}"
    likely, unlikely = reversed(words) if log_odds > 0 else words
    return f"{odds(log_odds)} times likelier {likely} than {unlikely}"


def odds(log_odds: float) -> str:
    """Odds of one thing against another, whichever is the likelier, by their log: ``230``, ``over 1000``."""
    return f"{float(f'{math.exp(abs(log_odds)):.2g}'):.0f}" if abs(log_odds) < _MANY else "over 1000"


def _is_the_tolerance(change: ChangeResult) -> bool:
    """Whether more pairs are no way out of an INCONCLUSIVE."""
    return change.evidence is not None and change.evidence.resolves < change.tolerance


def comparison(
    changes: Sequence[ChangeResult],
    baseline: str,
    differs: Mapping[str, tuple[str | None, str | None]],
    *,
    pairs: int = 0,
    earlier: int = 0,
    tries: int = 1,
    why_not: str = "",
    functions: Sequence[FunctionChange] = (),
    builds: BuildPair | None = None,
) -> ComparisonResult:
    """What result.json has of a comparison: the PDR's change in front, and all of them."""
    first = changes[0]
    pair = builds or BuildPair()
    return ComparisonResult(
        baseline=baseline, tolerance=first.tolerance, change=first.change, lower=first.lower, upper=first.upper,
        confidence=first.confidence, changes=tuple(changes), pairs=pairs, earlier=earlier, tries=tries,
        accepted=not why_not, why_not=why_not, differs=dict(differs), functions=tuple(functions),
        notice=_notice(functions, changes), build_differences=pair.differences, unknown_configs=pair.unknown,
    )  # fmt: skip


def summarised(name: str, unit: str, better: Better, samples: Sequence[float]) -> MeasurandResult | None:
    """A measurand's mean with its 95 % interval; None without samples."""
    if not samples:
        return None
    interval = t_interval(samples, CHANGE_CONFIDENCE) if len(samples) > 1 else None
    return MeasurandResult(
        name=name, unit=unit, better=better, value=mean(samples),
        # No quantity of ours is below 0, however much its samples scatter.
        lower=max(0.0, interval.low) if interval else None, upper=interval.high if interval else None,
        samples=tuple(samples),
    )  # fmt: skip


def shown_value(value: float, unit: str) -> str:
    """A value as people read it."""
    return unit_of(unit).said(value)


def _lead(change: ChangeResult) -> str:
    if change.verdict is Verdict.INCONCLUSIVE and not _spans(change):
        return "unpaired boots do not decide" if change.evidence is None else "the pairs do not decide"
    return _LEADS[change.verdict]


def _spans(change: ChangeResult) -> bool:
    """Whether the interval reaches to both sides of the tolerance."""
    return change.lower <= (-change.tolerance if change.better == "higher" else change.tolerance) <= change.upper
