"""Scaling: how many times as many packets several CPUs handle at saturation as one of them does.

It is of trials in which the CPUs of an emulated guest execute in turn, so many instructions each. Time is instructions
there. What a CPU spends by waiting for a lock, for interrupts of another CPU, or without packets while another has
some, is time that passes. Atomics and lines that go from CPU to CPU take an emulator no time: `SharedLines` counts
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from pdrgate.measurands.description import Description, Rule, Sentence, Tolerance, TolerancesAsked
from pdrgate.measurands.measurand import BuildSeen, OnRequest
from pdrgate.measurands.unit_spelling import Unit
from pdrgate.record.phase import IN_LOCKSTEP, Phase
from pdrgate.record.trial import Trial, by_boot
from pdrgate.results.model import ChangeResult, MemoryResult
from pdrgate.results.verdict import Verdict

LOCKSTEP_TRIALS: Final = (Phase.ALL_CPUS, Phase.ONE_CPU, Phase.ALL_CPUS)
"""The trials of a boot. One CPU alone repeats to less than a thousandth."""
_WHOLE, _BUSY = 0.1, 0.01
"""The share of a trial's packets that the generator may fail to send, and that of the time in which CPUs may have
nothing to do where it fails to send more: then nobody knows for whose fault they had nothing."""
_LOST = 0.02
"""The share of the packets that may be lost: a packet that is dropped takes less time."""


def _times_of_one(change: ChangeResult, _: object) -> str:
    return f"all CPUs handle {change.candidate:.2f} times what one does ({change.baseline:.2f} before)"


@dataclass(frozen=True, slots=True)
class Scaling(OnRequest):
    """Packets that all CPUs of a guest handle in the time in which the first one alone handles one packet."""

    about = Description(
        "scaling", Unit("x", metric="scaling", prefixed=False), "higher",
        "packets that all CPUs handle at saturation while one CPU handles one",
        rule=Rule.SURE, tolerance=Tolerance(0.05, ""), sentence=Sentence(_times_of_one),
        slows="CPUs that wait for each other handle no more packets than fewer CPUs do.",
    )  # fmt: skip

    def value(self, trials: Sequence[Trial]) -> float | None:
        found = scalings(trials)
        return median(found) if found else None

    @classmethod
    def changed(cls, baseline: BuildSeen, candidate: BuildSeen, asked: TolerancesAsked) -> ChangeResult | None:
        """The change, where both builds' guests of several CPUs show it; its interval is what trials lie apart.

        It is a REGRESSION where each of the candidate's trials lies below each of the baseline's by more than the
        tolerance, which is larger where the baseline's CPUs wait for each other already.
        """
        before, after = baseline.findings.several_cpus, candidate.findings.several_cpus
        if before is None or after is None or before.cpus != after.cpus:
            return None
        old, new = (one.values.get(cls.about.name, ()) for one in (before, after))
        if not old or not new:
            return None
        change, lower, upper = (
            now / then - 1.0
            for now, then in ((median(new), median(old)), (min(new), max(old)), (max(new), min(old)))
        )  # fmt: skip
        # How long CPUs wait for each other depends on which of them comes first, by chance.
        tolerance = max(cls.about.tolerance.default, _OF_WAITING * (before.cpus - median(old)))
        return ChangeResult(
            measurand=cls.about.name, change=change, lower=lower, upper=upper, confidence=1.0, tolerance=tolerance,
            baseline=median(old), candidate=median(new), unit=cls.about.unit, better=cls.about.better,
            verdict=Verdict.REGRESSION if upper < -tolerance else Verdict.PASS,
        )  # fmt: skip


def tells_rate(trial: Trial) -> bool:
    """Whether a trial in which CPUs executed in turn shows how fast they handle packets: they were busy, or all was
    sent."""
    turns = [one for one in trial.seen.counter_changes.values() if one.get("turn_instructions")]
    whole = trial.unsent <= _WHOLE * (trial.offered + trial.unsent)
    busy = all(one.get("idle_instructions", 0) <= _BUSY * one["turn_instructions"] for one in turns)
    handled = trial.loss_ratio <= _LOST
    return trial.occasion.phase in IN_LOCKSTEP and (whole or busy) and handled and rate_in_turns(trial) > 0


def rate_in_turns(trial: Trial) -> float:
    """Packets that the CPUs handle for each instruction of their time; 0 where a trial has no turns."""
    turns = [one for one in trial.seen.counter_changes.values() if one.get("turn_instructions")]
    return sum(one.get("packets", 0) / one["turn_instructions"] for one in turns)


def scalings(trials: Sequence[Trial]) -> tuple[float, ...]:
    """A value of each trial on all CPUs, against one CPU of the same boot."""
    found: list[float] = []
    for own in by_boot([one for one in trials if tells_rate(one)]).values():
        rates = {phase: [rate_in_turns(one) for one in own if one.occasion.phase == phase] for phase in IN_LOCKSTEP}
        if rates[Phase.ONE_CPU]:
            found += [rate / median(rates[Phase.ONE_CPU]) for rate in rates[Phase.ALL_CPUS]]
    return tuple(found)


_OF_WAITING = 1 / 3
"""The share of what a baseline lacks of as many as there are CPUs that the candidate may lack more: equal builds of
which two CPUs handled 1.4 to 1.6 times what one does were seen to differ by a tenth from trial to trial."""


def with_scaling(result: MemoryResult, trials: Sequence[Trial]) -> Mapping[str, tuple[float, ...]]:
    """The values of a result with those of the scaling, where its trials have some."""
    found = scalings(trials)
    return {**result.values, Scaling.name: found} if found else result.values
