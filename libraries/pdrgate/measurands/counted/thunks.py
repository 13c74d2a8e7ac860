"""Indirect branches and returns of a packet that go through thunks.

A thunk keeps a CPU from guessing where a branch goes. It has few instructions, and the CPU stands still for each, so
that their cost hides it. Which thunks a kernel has in use is decided apart for branches and for returns, and a packet
returns some twenty times as often: the scatter of the returns would hide the branches. So they are two numbers.

The cost by function counts how often each thunk is entered. Indirect branches through none are known of memory trials,
and are not judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import ClassVar, Final, Self

from pdrgate.measurands.counted.cost import AtSaturation, idle_of, on_path, saturated
from pdrgate.measurands.description import TolerancesAsked
from pdrgate.measurands.functions.function_changes import explained_by_batches
from pdrgate.measurands.functions.more_by_function import counted_by_function, share_of
from pdrgate.measurands.measurand import BuildSeen
from pdrgate.observers.function_names import branches_by, returns_by
from pdrgate.record.trial import Trial
from pdrgate.results.model import ChangeResult, CostResult, FunctionResult, PartChange
from pdrgate.results.verdict import Verdict

_RANGES = 3.0
"""Times what replicates of one build lie apart that the builds must lie apart by, to have surely changed."""
_TOLD = 0.1
"""Passes through a thunk for a packet, from which on the thunk is named."""
_STANDS_STILL = "A CPU stands still at each thunk; instructions do not show that."


class OfThunks(AtSaturation):
    """How often a packet goes through thunks of a kind: the median of the trials at saturation."""

    least: ClassVar[float]
    """What a packet may have more of, whatever share of all that is."""

    def value(self, trials: Sequence[Trial]) -> float | None:
        idle = idle_of(trials)
        counted = [on_path(one, idle) for one in saturated(trials, self.loss_ratio)]
        found = [sum(calls for name, (_, calls) in path.items() if self.counts(name)) for path in counted]
        return median(found) if found else None

    @classmethod
    def changed(cls, baseline: BuildSeen, candidate: BuildSeen, asked: TolerancesAsked) -> ChangeResult | None:
        """What surely changed, by all replicates of both builds; a growth beyond the tolerance is a REGRESSION.

        What is counted for each packet is compared, and nothing of a program that runs alone.
        """
        before, after = baseline.findings.cost, candidate.findings.cost
        if before is None or after is None or any(one.each != "packet" or one.alone for one in (before, after)):
            return None
        return _change(cls, before, after)

    @staticmethod
    def counts(name: str) -> bool:
        """Whether a function is such a thunk."""
        raise NotImplementedError


class ThunkBranches(OfThunks):
    """Indirect jumps and calls, as retpolines have them."""

    least = 1.5
    about = counted_by_function(
        "branches by thunks", "thunk_branches", "indirect jumps and calls of a packet that go through thunks",
        "takes {} {} indirect branches through thunks", 0.1, slows=_STANDS_STILL,
    )  # fmt: skip
    counts = staticmethod(branches_by)


class ThunkReturns(OfThunks):
    """Returns of functions, as safe RET has them."""

    least = 10.0
    about = counted_by_function(
        "returns by thunks", "thunk_returns", "returns of a packet that go through thunks",
        "takes {} {} returns through thunks", 0.1, slows=_STANDS_STILL,
    )  # fmt: skip
    counts = staticmethod(returns_by)


OF_THUNKS: Final[tuple[type[OfThunks], ...]] = (ThunkBranches, ThunkReturns)


def _change(kind: type[OfThunks], before: CostResult, after: CostResult) -> ChangeResult | None:
    base, candidate = (_Entered.of(kind, one) for one in (before, after))
    if base is None or candidate is None:
        return None
    by = candidate.times - base.times
    apart = max(candidate.fewest - base.most, base.fewest - candidate.most)
    scatter = max(one.most - one.fewest for one in (base, candidate))
    explained = explained_by_batches(before, after) * max(base.times, candidate.times)
    parts = _parts(kind, before, after)
    if not parts or apart < max(kind.least / 2, _RANGES * scatter, explained):
        return None
    whole = share_of(base.times)
    allowed = max(kind.about.tolerance.default, kind.least / whole)
    return ChangeResult(
        measurand=kind.about.name, change=by / whole, lower=(candidate.fewest - base.most) / whole,
        upper=(candidate.most - base.fewest) / whole, confidence=1.0, tolerance=allowed, baseline=base.times,
        candidate=candidate.times, unit=kind.about.unit, better=kind.about.better, parts=parts,
        verdict=Verdict.REGRESSION if by / whole > allowed else Verdict.PASS,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Entered:
    """How often a packet of a build enters thunks of a kind."""

    times: float
    fewest: float
    """The least that a replicate can have had, by those of each thunk."""
    most: float

    @classmethod
    def of(cls, kind: type[OfThunks], cost: CostResult) -> Self | None:
        """What a cost by function says; None where it is of one replicate, or calls were not counted."""
        if not any(one.calls and one.fewest_calls is not None for one in cost.functions):
            return None
        found = _thunks(kind, cost).values()
        return cls(
            sum(one.calls for one in found), sum(one.fewest_calls or 0.0 for one in found),
            sum(one.most_calls or 0.0 for one in found),
        )  # fmt: skip


def _parts(kind: type[OfThunks], before: CostResult, after: CostResult) -> tuple[PartChange, ...]:
    """The thunks that are entered more or less often, the largest change first."""
    old, new = (
        {name: one.calls for name, one in _thunks(kind, cost).items()} for cost in (before, after)
    )  # fmt: skip
    every = (
        PartChange(function=name, change=now - past, baseline=past, candidate=now)
        for name in old.keys() | new.keys()
        for past, now in ((old.get(name, 0.0), new.get(name, 0.0)),)
    )
    found = [one for one in every if abs(one.change) >= _TOLD]
    return tuple(sorted(found, key=lambda one: (-abs(one.change), one.function)))


def _thunks(kind: type[OfThunks], cost: CostResult) -> dict[str, FunctionResult]:
    return {one.name: one for one in cost.functions if kind.counts(one.name)}
