"""An assessment judges the curve of trials: is the PDR of this experiment a number to compare?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.model import (
    AssessmentResult,
    CheckResult,
    CurvePdr,
    DriftResult,
    LoadResult,
    SaturationResult,
)
from pdrgate.stability import checks as _checks
from pdrgate.stability.checks import Bounds
from pdrgate.stability.curve import LoadLossCurve, LoadPoint, first_past
from pdrgate.stability.dips import without_lone_dips
from pdrgate.stability.drift import (
    Repeats,
    RepeatScatter,
    repeats_that_matter,
    scatters,
    series_looked_at,
    trials_past_the_pdr,
)
from pdrgate.stability.throughput_increase import (
    DEFAULT_ETA,
    DEFAULT_PLR_THRESHOLD,
    Label,
    Saturation,
    TirReading,
    detect_saturation,
)
from pdrgate.values.errors import EXIT_FAIL, EXIT_FAULT, EXIT_PASS


class StabilityVerdict(StrEnum):
    """Verdict of an assessment: a subset of the gate's verdicts plus STABLE, which has no baseline to compare with."""

    STABLE = "STABLE"
    """The curve supports a PDR."""
    UNSTABLE = "UNSTABLE"
    """A check failed beyond what chance explains."""
    INCONCLUSIVE = "INCONCLUSIVE"
    """The data can support neither: too few loads or repeats, or a TIR whose own scatter spans its bound."""
    GENERATOR_LIMITED = "GENERATOR_LIMITED"
    """Saturation was not reached because the generator could not send more."""

    @property
    def exit_code(self) -> int:
        """Exit code of a program that ends with this verdict."""
        if self is StabilityVerdict.GENERATOR_LIMITED:
            return EXIT_FAULT
        return EXIT_PASS if self is StabilityVerdict.STABLE else EXIT_FAIL


@dataclass(frozen=True, slots=True)
class Assessment:
    """Everything known about one experiment."""

    source: str
    reading: TirReading
    plr_threshold: float
    curve: LoadLossCurve
    labels: Mapping[TirReading, Label]
    pdr: CurvePdr
    saturation: Saturation
    """The saturation in the chosen reading."""
    repeats: tuple[Repeats, ...]
    together: Repeats | None
    """All trials past the PDR."""
    checks: tuple[CheckResult, ...]
    verdict: StabilityVerdict
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """The checks that failed, the decisive ones first."""
        return tuple(check for check in self.checks if check.passed is False)

    @property
    def reason(self) -> str:
        """The reason why the verdict is not STABLE, in one line; empty when it is."""
        if self.verdict is StabilityVerdict.STABLE:
            return ""
        decisive = self.failed or tuple(check for check in self.checks if check.passed is None)
        return decisive[0].sentence

    def result(self) -> AssessmentResult:
        """All of it as a stored result; an entry of ``experiments`` of ``pdrgate assess --format json``."""
        return AssessmentResult(
            source=self.source,
            labels={reading.value: label.value for reading, label in self.labels.items()},
            reading=self.reading.value,
            pdr=self.pdr,
            saturation=SaturationResult(
                potential_index=self.saturation.potential_index,
                actual_index=self.saturation.actual_index,
                tir=tuple(ratio for ratio in self.saturation.tir if ratio is not None),
            ),
            loads=tuple(map(_load_result, self.curve.points, self.saturation.tir)),
            generator_limited_loads=self.curve.limited_loads,
            drift=DriftResult(
                trend_past_pdr=self.together.trend.change if self.together and self.together.trend else None,
                trend_past_pdr_p=self.together.trend.p_value if self.together and self.together.trend else None,
                series=tuple(repeats.result() for repeats in self.repeats),
            ),
            checks=self.checks,
            verdict=self.verdict.value,
            reason=self.reason,
            notes=self.notes,
        )


def _load_result(point: LoadPoint, tir: float | None) -> LoadResult:
    return LoadResult(
        load=point.load,
        runs=point.runs,
        plr=point.plr,
        plr_sd=point.plr_sd,
        lcl=point.lcl,
        ucl=point.ucl,
        delta_ucl=point.delta_ucl,
        steady_plr=point.steady.plr,
        throughput=point.throughput,
        tir=tir,
        surplus=point.surplus,
        generator_limited=point.left_out,
        losses=point.losses,
        throughputs=point.throughputs,
        least=point.least,
    )


def assess(
    trials: Iterable[Trial],
    *,
    reading: TirReading = TirReading.STRICT,
    plr_threshold: float = DEFAULT_PLR_THRESHOLD,
    eta: float = DEFAULT_ETA,
    confidence: float = 0.95,
    bounds: Bounds | None = None,
    over_time: bool = True,
    spare_dips: bool = False,
    pdr: float | None = None,
    source: str = "",
    notes: tuple[str, ...] = (),
) -> Assessment:
    """Assess one experiment: all ``trials`` of one scenario and boot, in measured order.

    From the PDR on the throughput must stay the same. An exception are experiments with trials of the delivered rate
    past the PDR (`Phase.PAST`): it is then a measurand of its own, and is compared. Its loads are in the curve and its
    labels, and no check looks at those between the PDR and the highest.

    Without ``over_time`` only the curve's shape is judged. That is for trials of several boots, measured in turn with
    those of another build. Differences between boots, or over time, then show in the comparison of the two.

    Args:
        spare_dips: leave lone dips out of the trials that the checks on loss, saturation and spread judge, as a shared
            machine requires. The curve and its labels are of all trials.
        pdr: the PDR in packets/s, if trials of its own have measured it; else the load where the curve crosses the
            threshold. All that names a PDR names this one.

    Raises:
        ValueError: there are no trials, or one has an intended load of 0.
    """
    bounds = bounds or Bounds()
    plr_threshold, eta = float(plr_threshold), float(eta)  # plain numbers, for they are stored
    trials = list(trials)
    curve = LoadLossCurve.from_trials(trials, confidence)

    def saturation_of(curve: LoadLossCurve, reading: TirReading) -> Saturation:
        return detect_saturation(
            curve.loads,
            curve.steady_plrs,
            throughputs=curve.throughputs,
            reading=reading,
            plr_threshold=plr_threshold,
            eta=eta,
        )

    by_reading = {each: saturation_of(curve, each) for each in TirReading}
    saturation = by_reading[reading]
    plateau = not any(trial.occasion.phase == Phase.PAST for trial in trials)
    asked = trials if plateau else _outside(trials, curve, curve.pdr(plr_threshold).load if pdr is None else pdr)
    outside = curve if plateau else LoadLossCurve.from_trials(asked, confidence)
    crossing = outside.pdr(plr_threshold)
    known = crossing if pdr is None else replace(crossing, load=pdr)
    undipped = without_lone_dips(asked, bounds.each) if spare_dips else asked
    dips = len(asked) - len(undipped)
    judged = LoadLossCurve.from_trials(undipped, confidence) if dips else outside
    level = bounds.each / series_looked_at(outside)
    repeats = repeats_that_matter(outside, plr_threshold, level)
    together = trials_past_the_pdr(undipped, judged, outside, plr_threshold, level)
    enough = _checks.check_enough_data(judged, plr_threshold, bounds, curve)
    checks: tuple[CheckResult, ...] = (enough,)
    saturated = saturation_of(judged, reading)
    if outside.points:
        checks = (
            _checks.check_saturation(
                judged, saturated, known, reading=reading, plr_threshold=plr_threshold, eta=eta, bounds=bounds
            )
            if plateau
            else _checks.check_plateau(judged, known, plr_threshold=plr_threshold, eta=eta, bounds=bounds),
            _checks.check_low_load_loss(judged, known, plr_threshold, bounds),
            _checks.check_livelock(outside, bounds, curve),
            *(_over_time(repeats, together, scatters(judged, plr_threshold), bounds) if over_time else ()),
            enough,
        )
    seen = saturated.potential_index if plateau else first_past(judged.steady_plrs, plr_threshold)
    return Assessment(
        source=source,
        reading=reading,
        plr_threshold=plr_threshold,
        curve=curve,
        labels={each: found.label for each, found in by_reading.items()},
        pdr=crossing,
        saturation=saturation,
        repeats=repeats,
        together=together,
        checks=checks,
        verdict=_verdict(judged, seen is not None, checks),
        notes=notes + _notes(curve, dips),
    )


def _over_time(
    repeats: tuple[Repeats, ...], together: Repeats | None, scatter: tuple[RepeatScatter, ...], bounds: Bounds
) -> tuple[CheckResult, ...]:
    past = () if together is None else (together,)
    return (
        _checks.check_trend((*repeats, *past), bounds),
        _checks.check_autocorrelation((*repeats, *past), bounds),
        # Not of the series of PDRs: interpolating across the knee folds one mode of throughput into two of PDR.
        _checks.check_two_modes([*(series for series in repeats if series.load is not None), *past], bounds),
        _checks.check_spread(scatter, bounds),
    )


def _outside(trials: list[Trial], curve: LoadLossCurve, pdr: float | None) -> list[Trial]:
    """The trials up to the PDR, and those at the curve's highest load and beyond."""
    if pdr is None or not curve.points:
        return trials
    return [one for one in trials if not pdr < one.intended_load < curve.loads[-1]]


def _verdict(curve: LoadLossCurve, saturated: bool, checks: tuple[CheckResult, ...]) -> StabilityVerdict:
    highest = curve.points[-1].load if curve.points else 0.0
    cut_off = not saturated and any(load > highest for load in curve.limited_loads)
    spared = {_checks.ENOUGH_DATA, _checks.SATURATION} if cut_off else {_checks.ENOUGH_DATA}
    if any(check.passed is False and check.name not in spared for check in checks):
        return StabilityVerdict.UNSTABLE
    if cut_off:
        return StabilityVerdict.GENERATOR_LIMITED
    undecided = any(check.passed is None and check.name == _checks.SATURATION for check in checks)
    if undecided or any(check.passed is False for check in checks):
        return StabilityVerdict.INCONCLUSIVE
    return StabilityVerdict.STABLE


def _notes(curve: LoadLossCurve, dips: int) -> tuple[str, ...]:
    notes = [f"{curve.left_out} generator-limited repeats left out"] if curve.left_out else []
    if loads := len(curve.limited_loads):
        notes.append(f"{loads} load{'s' * (loads != 1)} left out, where all repeats were generator-limited")
    if disturbed := sum(point.disturbed for point in curve.points):
        notes.append(f"{disturbed} disturbed repeat{'s' * (disturbed != 1)} left out")
    if loads := len(curve.disturbed_loads):
        notes.append(f"{loads} load{'s' * (loads != 1)} left out, where the machine disturbed the repeats")
    if dips:
        dipped = "1 repeat dips" if dips == 1 else f"{dips} repeats dip"
        notes.append(f"{dipped}, as on a shared machine: left out of the checks on loss, saturation and spread")
    return tuple(notes)
