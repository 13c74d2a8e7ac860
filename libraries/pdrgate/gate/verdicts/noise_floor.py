"""The noise floor of the testbed that is measured on: what is known of it, and what a measurement adds."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from pdrgate.gate.run.progress import RunObserver
from pdrgate.measurands import SaturationThroughput, lower_is_better
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.replication import MeasurandNoise, NoiseFloor, NoiseObservation, ObservedBoot, PairsRule, TrialScatter
from pdrgate.results.fingerprint import build_digest, conditions, series
from pdrgate.stats.intervals import sample_deviation
from pdrgate.values.errors import PdrGateError, UsageError

if TYPE_CHECKING:
    from pdrgate.history.database.experience import Experience

_REPORTED_PAIRS = (4, 16)


def noise_floor(
    experience: Experience | None, fingerprint: Mapping[str, str], observer: RunObserver | None = None
) -> NoiseFloor:
    """What is known of a testbed; nothing without experience or fingerprint, or where it cannot be read.

    Args:
        observer: gets a sentence where it cannot be read; a verdict comes all the same.
    """
    # A run that is resumed keeps the boots of a comparison that had ended once more.
    found: dict[bytes, NoiseObservation] = {}
    if experience is not None and fingerprint:
        try:
            for seen in experience.observations(series(fingerprint)):
                found.setdefault(msgspec.json.encode(seen.boots), seen)
        except PdrGateError as error:
            if observer is not None:
                observer.warned(f"what is known of this testbed's noise cannot be read: {error}")
    return NoiseFloor.seen(found.values(), time.time(), lower_is_better())


def remember(
    experience: Experience | None,
    fingerprint: Mapping[str, str],
    boots: Sequence[ObservedBoot],
    observer: RunObserver,
) -> None:
    """Keep what boots came to; that it cannot be kept changes no verdict."""
    if experience is None or not fingerprint or not boots:
        return
    seen = NoiseObservation(when=time.time(), boots=tuple(boots))
    try:
        experience.add_observation(series(fingerprint), conditions(fingerprint), seen)
    except PdrGateError as error:
        observer.warned(f"what boots deviate by is not kept: {error}")


def as_observed(
    fingerprint: Mapping[str, str],
    boot: str,
    values: Mapping[str, float],
    trials: Sequence[Trial],
    *,
    label: str = "",
    pair: int = 0,
) -> ObservedBoot:
    """A boot as it is kept.

    Args:
        values: by measurand.
        trials: of its replicates.
    """
    return ObservedBoot(
        build=build_digest(fingerprint, label), boot=boot, pair=pair, values=dict(values), within=_within(trials)
    )


def _within(trials: Sequence[Trial]) -> dict[str, TrialScatter]:
    """Scatter of trials at the highest load of the curve, which are those of the saturation throughput."""
    sound = [trial for trial in trials if trial.sound and trial.occasion.phase in (Phase.REPEAT, Phase.SATURATION)]
    highest = max((trial.intended_load for trial in sound), default=0.0)
    rates = [trial.forwarding_rate for trial in sound if trial.intended_load == highest]
    rates = [math.log(rate) for rate in rates if rate > 0]
    if len(rates) < 2:
        return {}
    return {SaturationThroughput.name: TrialScatter(deviation=sample_deviation(rates), count=len(rates))}


def resolvable_in_words(floor: NoiseFloor, tolerances: Mapping[str, float]) -> str:
    """Tolerance that a testbed resolves, of the measurand that is hardest; what to do where nobody knows.

    Args:
        tolerances: by measurand, what is accepted.
    """
    hardest = _hardest(floor, tolerances)
    if hardest is None:
        return "what this testbed resolves is not known yet: too few pairs of boots"
    told = ", ".join(f"{100 * (hardest.resolves(pairs) or 0.0):.2g} % with {pairs} pairs" for pairs in _REPORTED_PAIRS)
    dips = f", {hardest.dips} of {hardest.seen} boots dipped" if hardest.dips else ""
    return f"this testbed resolves a tolerance of {told} ({hardest.measurand}; {floor.pairs} pairs so far{dips})"


def check_resolvable(floor: NoiseFloor, tolerances: Mapping[str, float], most: int) -> None:
    """Raises UsageError when a tolerance is surely below what the most pairs resolve; the unknown refuses nothing.

    One comparison beside a busy neighbour makes no testbed noisy: each of several must have been.
    """
    most = max(most, PairsRule().most)
    for measurand, tolerance in tolerances.items():
        least = floor.of(measurand).resolves(most, at_best=True)
        if least is not None and tolerance < least:
            raise UsageError(
                f"on this testbed {most} pairs resolve at best a tolerance of {least:.2%} of {measurand}, by the "
                f"quietest of its comparisons, and {tolerance:.2%} was asked for; ask for more, take a quieter "
                "testbed, or go on all the same with --set below_noise=true"
            )


def _hardest(floor: NoiseFloor, tolerances: Mapping[str, float]) -> MeasurandNoise | None:
    """The one that needs most pairs for its tolerance, of those that are known."""
    shares = {
        name: least / max(tolerance, 1e-9)
        for name, tolerance in tolerances.items()
        if (least := floor.of(name).resolves(_REPORTED_PAIRS[0])) is not None
    }
    return floor.of(max(shares, key=shares.__getitem__)) if shares else None
