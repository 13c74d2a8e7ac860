"""Soak: one load below the PDR for an hour or so, in slices that each are a trial, on disk before the next begins.

No slice is measured again, whatever it shows: that is what the time was for. What is lost in a slice that the machine
disturbed is reported, and is no evidence against the SUT.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from statistics import median

from pdrgate.measurands.rates.latency import told_by
from pdrgate.observers.accounting import total
from pdrgate.record.cause import causes_in_words
from pdrgate.record.trial import Trial
from pdrgate.results.soak import SoakResult
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.stats.ranks import monotone_trend

SHARE = 0.9
_SLICES = 360
"""Slices of a soak, about: an hour has slices of ten seconds."""
_SHORTEST = 1.0
"""Seconds of a slice."""
_MOST_BEYOND = 0.5
"""Part of the slices that may be generator-limited; beyond it the soak has no verdict on the SUT."""
_BEYOND_CHANCE = 0.01
_LEAST_DRIFT = 0.1
"""Least relative drift of the latency that is reported."""


def slices(duration: float) -> tuple[float, ...]:
    """How long each slice of a soak is, in seconds."""
    each = min(duration, max(_SHORTEST, duration / _SLICES))
    number = max(1, round(duration / each)) if each else 0
    return (duration / number,) * number if number else ()


def soaked(trials: Sequence[Trial], share: float, share_of: str, asked: float) -> SoakResult:
    """What the slices of a soak come to, in measured order; at least one."""
    began, first_loss = 0.0, None
    for trial in trials:
        if trial.lost:
            first_loss = began
            break
        began += trial.intended_duration
    disturbed = [trial for trial in trials if trial.seen.disturbed]
    shown = [trial for trial in disturbed if trial.lost] or disturbed
    probed = [found for trial in trials if (found := told_by(trial)) is not None]
    return SoakResult(
        load=trials[0].intended_load, share=share, share_of=share_of, asked=asked,
        seconds=sum(trial.intended_duration for trial in trials), slice=trials[0].intended_duration, slices=len(trials),
        offered=sum(trial.offered for trial in trials), lost=sum(trial.lost for trial in trials),
        bursts=sum(lossy for lossy, _ in groupby(trials, key=lambda trial: trial.lost > 0)),
        first_loss=first_loss, disturbed=len(disturbed), disturbed_lost=sum(trial.lost for trial in disturbed),
        limited=sum(trial.generator_limited for trial in trials),
        evidence=causes_in_words(shown[0].seen.disturbed) if shown else "",
        latency=median(one.p50 for one in probed) if probed else None,
        tail=median(one.p99 for one in probed) if probed else None,
        drift=_drift([one.p50 for one in probed]),
        losses=total(trials),
    )  # fmt: skip


def judged_soak(found: SoakResult, tolerated: float) -> Judgement:
    """A soak that loses no more than the tolerated part is a PASS, whatever else disturbed it.

    Loss that only the SUT explains is UNSTABLE: what it holds for seconds it does not hold for long. Where the machine
    disturbed all slices that lost packets, the soak is DISTURBED.
    """
    reason = "; ".join([found.sentence(), *found.remarks()])
    if found.lost <= tolerated * found.offered:
        if found.limited > _MOST_BEYOND * found.slices:
            return Judgement(Verdict.GENERATOR_LIMITED, f"the load was not offered: {reason}")
        return Judgement(Verdict.PASS, reason)
    if found.loss_ratio <= tolerated:
        return Judgement(Verdict.DISTURBED, reason)
    return Judgement(Verdict.UNSTABLE, reason)


def _drift(latencies: Sequence[float]) -> float | None:
    """How much the last quarter of the slices differs from the first, where there is a trend beyond chance.

    Not the trend's own change: of latencies that fall to a third and stay there, a line falls below 0.
    """
    found = monotone_trend(latencies)
    if found is None or found.p_value > _BEYOND_CHANCE:
        return None
    quarter = max(1, len(latencies) // 4)
    change = median(latencies[-quarter:]) / median(latencies[:quarter]) - 1.0
    return change if abs(change) >= _LEAST_DRIFT else None
