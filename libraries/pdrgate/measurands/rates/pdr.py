"""The partial drop rate of a replicate: where the loss ratio crosses its goal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, Self

from pdrgate.measurands.description import Description, Tolerance
from pdrgate.measurands.measurand import Ask, Measurand, Setting, rounded
from pdrgate.measurands.rates.saturation import SaturationThroughput
from pdrgate.measurands.unit_spelling import PACKETS
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.model import ChangeResult


@dataclass(frozen=True, slots=True)
class Sweep:
    """Each load once, in the given order (packets/s), for ``duration`` seconds; the curve is judged by PASTRAMI."""

    loads: tuple[float, ...]
    duration: float

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        done = {trial.intended_load for trial in trials if trial.occasion.phase == Phase.REPEAT}
        return next((Ask(load, self.duration, Phase.REPEAT) for load in self.loads if load not in done), None)


_SAG = 0.03
"""A SUT that forwards so much less at its most than at a smaller overload suffers from overload."""
_VERIFIED = 0.8
"""Share of the width by which a load lies below the knee that is tried first. If it holds, the knee is the PDR."""
_VERIFIED_IF_EXPECTED = 0.1
"""Share of the width below the knee, where a PDR is expected: it may lie below the knee, by less than the width."""
_BESIDE = 0.48
"""A share of the width: so far on each side of an expected PDR lie the loads that confirm it, rounded as they are."""
_STEP_DOWN = 0.7
_MAJORITY = 2
_SPAN = 100.0
"""How far below the lowest load of the curve a PDR is looked for."""


@dataclass(frozen=True, slots=True)
class PartialDropRate(Measurand):
    """The PDR, packets/s, from as many trials as it takes to enclose it within a relative ``width``.

    No SUT can hold more than its knee, T_sat / (1 - loss_ratio) (PASTRAMI Eq. 3). So a load just below the knee is
    tried: when it holds, the knee is the PDR. When it does not, loss begins before saturation, and the first load that
    loses too much is looked for below, by bisection. T_sat says nothing of a SUT that forwards less the more it is
    offered (PASTRAMI Eq. 4; a livelock): see `knee`. A load holds when its first trial does, or two of three. It is too
    high when two of three lose more than ``loss_ratio`` (an exceed ratio of a half, RFC 9971 section 4.6.7): one stall
    of the machine decides nothing. Loss is the steady loss ratio, so that a PDR does not depend on how long trials
    last.
    """

    saturation: SaturationThroughput
    loss_ratio: float
    width: float
    duration: float
    min_load: float
    most: int = 16
    """Trials of a replicate, at most."""
    expected: float = 0.0
    """What other replicates came to, packets/s: loads just below and above are tried first; 0: not known.

    That a load above it holds must be said twice, too."""

    about = Description(
        "PDR", PACKETS, "higher", "the highest load that loses no more than the goal's loss ratio", essential=True,
        # Within 2 % of its knee an end host holds a load or not by chance: whether its kernel's thread is awake.
        tolerance=Tolerance(least_delivered=0.05),
    )  # fmt: skip

    @classmethod
    def of(cls, setting: Setting) -> Self:
        saturation = SaturationThroughput.of(setting)
        lowest = min(setting.loads) / _SPAN
        return cls(
            saturation, setting.loss_ratio, setting.width, setting.duration, lowest, expected=setting.expected
        )  # fmt: skip

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        load = self._next_load(trials)
        spent = sum(trial.occasion.phase == Phase.PDR for trial in trials)
        return None if load is None or spent >= self.most else Ask(load, self.duration, Phase.PDR)

    def value(self, trials: Sequence[Trial]) -> float | None:
        """The knee, or the crossing between the highest load that holds and the lowest that does not."""
        knee = self.knee(trials)
        if knee is None:
            return None
        held, too_high, _ = self._decided(trials, knee)
        if held is None:
            return None
        if too_high is None:
            return knee
        rate = median(trial.forwarding_rate for trial in self._sound(trials) if trial.intended_load == too_high)
        return min(max(rate / (1.0 - self.loss_ratio), held), too_high)

    def knee(self, trials: Sequence[Trial]) -> float | None:
        """The load beyond which saturation alone loses too much; None while that is not known.

        Where less was forwarded at the saturation's load than at a smaller overload, what was forwarded there counts;
        where even a load beyond that held, the lowest overload above it is all that is known.
        """
        rate = self.saturation.value(trials)
        if rate is None:
            return None
        at: dict[float, list[Trial]] = {}
        for trial in trials:
            if trial.sound and trial.occasion.phase in (Phase.REPEAT, Phase.SATURATION):
                at.setdefault(trial.intended_load, []).append(trial)
        # By medians: a load that a SUT of wavering speed held once is no load that it holds.
        losses = {load: median(trial.steady_loss_ratio for trial in found) for load, found in at.items()}
        overloads = {
            load: median(trial.forwarding_rate for trial in found)
            for load, found in at.items()
            if losses[load] > self.loss_ratio
        }
        held = max((load for load, loss in losses.items() if loss <= self.loss_ratio), default=0.0)
        best = max(overloads.values())
        knee = (best if rate < best * (1.0 - _SAG) else rate) / (1.0 - self.loss_ratio)
        return knee if held < knee else min((load for load in overloads if load > held), default=knee)

    def _next_load(self, trials: Sequence[Trial]) -> float | None:
        knee = self.knee(trials)
        if knee is None:
            return None
        held, too_high, open_load = self._decided(trials, knee)
        if open_load is not None:
            return open_load
        if self.expected and (load := self._beside_expected(held or 0.0, too_high, knee)) is not None:
            return load
        below_knee = self._below(knee)
        if held is None:
            lower = below_knee if too_high is None else rounded(too_high * _STEP_DOWN)
            return lower if lower >= self.min_load else None
        if 1.0 - held / (knee if too_high is None else too_high) <= self.width:
            return None
        return below_knee if too_high is None else rounded((held * too_high) ** 0.5)

    def _below(self, knee: float) -> float:
        """The load just below the knee that is tried first. If it holds, the knee is the PDR."""
        return rounded(knee * (1.0 - (_VERIFIED_IF_EXPECTED if self.expected else _VERIFIED) * self.width))

    def _beside_expected(self, held: float, too_high: float | None, knee: float) -> float | None:
        """The load beside the expected PDR that is to be tried next; None where neither side has one left to try."""
        below, above = (rounded(self.expected * (1.0 + side * _BESIDE * self.width)) for side in (-1, 1))
        if too_high is not None:
            lower = rounded(too_high * (1.0 - 2 * self.width))
            beside = rounded(below * (1.0 - self.width)) < too_high <= below
            return lower if beside and held < lower else None
        return next((load for load in (below, min(above, self._below(knee))) if held < load < knee), None)

    def _decided(self, trials: Sequence[Trial], knee: float) -> tuple[float | None, float | None, float | None]:
        """The highest load that holds with all below it, the lowest that is too high, and the lowest still open.

        Open loads above the one that is too high do not matter. Loads from the knee on are not looked at.
        """
        held = open_load = None
        votes: dict[float, list[bool]] = {}
        for trial in self._sound(trials):
            if trial.intended_load < knee:
                votes.setdefault(trial.intended_load, []).append(trial.steady_loss_ratio > self.loss_ratio)
        for load in sorted(votes):
            exceeded = sum(votes[load])
            kept = len(votes[load]) - exceeded
            if exceeded >= _MAJORITY:
                return held, load, open_load
            unlikely = 0.0 < self.expected < load
            if kept < _MAJORITY and (exceeded or unlikely):
                open_load = open_load or load
            elif open_load is None:
                held = load
        return held, None, open_load

    def _sound(self, trials: Sequence[Trial]) -> list[Trial]:
        return [trial for trial in trials if trial.sound and trial.occasion.phase in (Phase.REPEAT, Phase.PDR)]


AT_THE_KNEE: Final = f"{PartialDropRate.name} (at the knee)"
"""The name of both where they agree."""
_APART: Final = 0.01
"""Relative: a PDR at the knee lies above the saturation throughput by the loss ratio of its goal, or by less."""
_EQUAL: Final = 1e-6
"""Changes that are measured by themselves differ by more."""


def agree_at_the_knee(changes: Iterable[ChangeResult]) -> bool:
    """Whether the changes of PDR and saturation throughput are the same, and so are their values."""
    known = {one.measurand: one for one in changes}
    pdr, saturation = known.get(PartialDropRate.name), known.get(SaturationThroughput.name)
    if pdr is None or saturation is None or pdr.verdict is not saturation.verdict:
        return False
    told = ((pdr.change, saturation.change), (pdr.lower, saturation.lower), (pdr.upper, saturation.upper))
    return all(math.isclose(one, other, rel_tol=0.0, abs_tol=_EQUAL) for one, other in told) and (
        math.isclose(pdr.candidate, saturation.candidate, rel_tol=_APART)
        and math.isclose(pdr.baseline, saturation.baseline, rel_tol=_APART)
    )  # fmt: skip


def told_once(changes: Iterable[ChangeResult]) -> list[ChangeResult]:
    """The changes without that of the saturation throughput, where it equals the PDR's."""
    found = list(changes)
    if not agree_at_the_knee(found):
        return found
    return [one for one in found if one.measurand != SaturationThroughput.name]
