"""Idle work: instructions that the SUT's kernel executes in a second in which it gets no packets.

It is the kernel's clock, and what its threads and timers do in the background. No packet costs it, so `Cost` takes it
away; it takes CPU time from packets all the same, and is judged by itself. Idle trials of one kernel differ by up to
1.9 times, in what a thread happens to tidy up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pdrgate.measurands.counted.cost import idle_of
from pdrgate.measurands.description import Description, Rule, Sentence, Tolerance, TolerancesAsked
from pdrgate.measurands.measurand import BuildSeen, Measurand
from pdrgate.measurands.unit_spelling import Unit
from pdrgate.record.stretch import USER_SPACE
from pdrgate.record.trial import Trial
from pdrgate.results.model import ChangeResult
from pdrgate.results.verdict import Verdict

_SURE = 2.0
"""Times the baseline's most that every idle trial of the candidate must have, to have surely grown."""
_MUCH = 1e7
"""Instructions per second more that are a REGRESSION: a hundredth of a CPU that executes 1000 million of them. A clock
of 1000 Hz in place of 250 adds some 4 million."""


def _times_as_much(change: ChangeResult, _: object) -> str:
    """A change of the idle work in a sentence: *the idle kernel executes 66 times as much (1.2 -> 79 M/s)*."""
    before, after = change.baseline / 1e6, change.candidate / 1e6
    return f"the idle kernel executes {1 + change.change:.2g} times as much ({before:.2g} -> {after:.3g} M instr/s)"


@dataclass(frozen=True, slots=True)
class IdleWork(Measurand):
    """Instructions per second of the idle trial that `Cost` asks for."""

    about = Description(
        "idle work", Unit("instructions/s idle", metric="idle_instructions_per_second", prefixed=False), "lower",
        "instructions that the SUT's kernel executes in a second without packets", rule=Rule.SURE,
        tolerance=Tolerance(_SURE - 1.0, ""), sentence=Sentence(_times_as_much),
        slows="What a kernel does in the background takes the CPU from packets; it is no part of what one costs.",
    )  # fmt: skip

    def value(self, trials: Sequence[Trial]) -> float | None:
        idle = idle_of(trials)
        if not idle or not idle[0].seen.counted:
            return None
        functions = idle[0].seen.functions.items()
        return sum(count for name, (count, _) in functions if name != USER_SPACE) / idle[0].seen.counted

    @classmethod
    def changed(cls, baseline: BuildSeen, candidate: BuildSeen, asked: TolerancesAsked) -> ChangeResult | None:
        """How the idle work grew; None where it did not surely, or a build's is not known."""
        about = cls.about
        old, new = ([value for value in side.values.get(about.name, ()) if value > 0] for side in (baseline, candidate))
        if not old or not new or min(new) < _SURE * max(old):
            return None
        before, after = median(old), median(new)
        tolerance = max(about.tolerance.default, _MUCH / before)
        grown = after / before - 1.0
        return ChangeResult(
            measurand=about.name, change=grown, lower=min(new) / max(old) - 1.0, upper=max(new) / min(old) - 1.0,
            confidence=1.0, tolerance=tolerance, baseline=before, candidate=after, unit=about.unit, better=about.better,
            verdict=Verdict.REGRESSION if grown > tolerance else Verdict.PASS,
        )  # fmt: skip
