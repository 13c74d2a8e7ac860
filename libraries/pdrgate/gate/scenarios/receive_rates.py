"""The MRR of one SUT: what is forwarded of all that the generator can offer, in some trials of one length."""

from __future__ import annotations

import dataclasses

from pdrgate.gate.sut.prepared_sut import PreparedSut
from pdrgate.gate.verdicts.change_verdict import summarised
from pdrgate.gate.verdicts.disturbance import Disturbance, remedy
from pdrgate.measurands import RECEIVE_RATE, Ask
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.model import MeasurandResult
from pdrgate.results.verdict import Judgement
from pdrgate.values.errors import UsageError

_FEWEST = 2
"""Trials that a rate has at least, for it to have a deviation."""


def check_count(count: int) -> None:
    """Raise UsageError where so many trials do not show how a rate scatters."""
    if count < _FEWEST:
        raise UsageError(f"{count} trials do not tell how a rate scatters; use {_FEWEST} or more, such as 10")


def receive_rate(
    sut: PreparedSut, load: float, duration: float, count: int
) -> tuple[MeasurandResult | None, Judgement | None]:
    """The MRR at a load, and a judgement where the machine kept it from being measured.

    Whether the generator reached its ceiling in a trial makes no difference, as long as nothing disturbed it: what it
    has is what is offered.
    """
    patience, before = sut.session.profile.patience, len(sut.trials)
    wanted = [_undisturbed(sut, load, duration, number, patience.disturbed) for number in range(1, count + 1)]
    disturbance = Disturbance.of(sut.trials[before:], dataclasses.replace(patience, limited=patience.disturbed))
    rates = [trial.forwarding_rate for trial in wanted if not trial.seen.disturbed]
    found = summarised(RECEIVE_RATE.name, RECEIVE_RATE.unit, RECEIVE_RATE.better, rates)
    return found, disturbance.weighed(None, remedy(sut.testbed))


def _undisturbed(sut: PreparedSut, load: float, duration: float, number: int, repeats: int) -> Trial:
    """One trial of the MRR, the last of those that it takes for one that nothing disturbed."""
    ask = Ask(load, duration, Phase.MRR)
    trial = sut.measure(ask, repeat=number)
    while trial.seen.disturbed and repeats:
        trial, repeats = sut.measure(ask, repeat=number), repeats - 1
    return trial
