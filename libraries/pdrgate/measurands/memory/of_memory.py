"""A measurand of memory trials: each function of the kernel has a part of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import ClassVar, Self

from pdrgate.measurands.description import Rule, TolerancesAsked
from pdrgate.measurands.functions.moved_work import moved_between
from pdrgate.measurands.measurand import BuildSeen, Setting
from pdrgate.measurands.memory.memory_trials import memory_of
from pdrgate.measurands.memory.surely_changed import ByFunction, surely_changed
from pdrgate.record.stretch import MemoryCounts, MemorySeen
from pdrgate.record.trial import Trial
from pdrgate.results.model import ChangeResult, Findings, MemoryResult
from pdrgate.results.verdict import Verdict


@dataclass(frozen=True, slots=True)
class OfMemory(ByFunction):
    """A measurand with values from memory trials. The first such measurand asks for them."""

    counted: ClassVar[str]
    """The field of `MemoryCounts` that it is."""

    @classmethod
    def of(cls, setting: Setting) -> Self | None:
        return cls() if setting.memory else None

    @classmethod
    def changed(cls, baseline: BuildSeen, candidate: BuildSeen, asked: TolerancesAsked) -> ChangeResult | None:
        """What surely changed, function by function. What is report-only has no verdict, and none below its tolerance.

        Work that moved from one function to another is no change.
        """
        before, after = (cls.seen(side.findings) for side in (baseline, candidate))
        change = surely_changed(cls, before, after, moved_between(baseline.findings, candidate.findings))
        if change is None or cls.about.rule is not Rule.REPORT_ONLY:
            return change
        return replace(change, verdict=Verdict.NO_BASELINE) if abs(change.change) > change.tolerance else None

    @staticmethod
    def seen(findings: Findings) -> MemoryResult | None:
        """Memory result of a build that has the measurand's values."""
        return findings.memory

    def value(self, trials: Sequence[Trial]) -> float | None:
        found = [sum(self.by_function(one).values()) for one in memory_of(trials)]
        return median(found) if found else None

    @classmethod
    def by_function(cls, seen: MemorySeen) -> Mapping[str, float]:
        """The value of each function, for a packet."""
        at = MemoryCounts._fields.index(cls.counted)
        return {name: counts[at] / seen.windows for name, counts in seen.functions.items()}
