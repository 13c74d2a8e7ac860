"""Samples of one measurand from two builds, the change between them, and whether pairs of earlier tries agree with it.

Earlier pairs come from a file or a database, and a machine may have been another one unseen. More of them than of the
fresh ones would decide, and the few fresh ones would even be taken for lone dips. So where earlier and fresh pairs have
not one ratio, only the fresh ones count.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from pdrgate.replication.earlier_tries import Pairs
from pdrgate.results.model import Better, ChangeResult, Evidence
from pdrgate.results.verdict import Verdict
from pdrgate.stats.intervals import (
    Change,
    Interval,
    change_interval,
    change_interval_of_boots,
    mean,
    paired_change_interval,
    raw_log_ratios,
    relative,
    sample_deviation,
    t_interval,
    t_quantile,
)
from pdrgate.stats.pooled import Deviation
from pdrgate.stats.ranks import rank_sum_p
from pdrgate.stats.robust import winsorised
from pdrgate.stats.sequential import drifting_likelihood_ratio, likely_correlation, log_likelihood_ratio, resolvable

NARROW = 0.2
"""A share of the tolerance: nothing is left to learn of a change whose interval reaches no further to either side."""
_FEWEST_NARROW = 6
"""Pairs, to say that: fewer may lie beside each other by chance."""
_THE_SAME = Deviation(0.0, 1.0)
"""The deviation of boots that add nothing to what their values deviate by."""


@dataclass(frozen=True, slots=True)
class Samples:
    """A sample of one measurand per replicate of two builds, in measured order, and the change that is tolerated."""

    measurand: str
    unit: str
    better: Better
    tolerance: float
    """Relative change for the worse that is accepted, in [0, 1)."""
    baseline: tuple[float, ...]
    candidate: tuple[float, ...]
    known: Deviation | None = None
    """Deviation of the log ratios of pairs, where it does not depend on the machine; None: it is estimated from these
    pairs."""

    def after(self, tries: Iterable[Pairs]) -> Samples:
        """Samples with the pairs of earlier tries in front of these.

        Pairs of each try are moved to the level of these, both sides alike. On another day a machine may be faster,
        which is no scatter of a build, and the ratios stay as they are. The last of an odd number of pairs is left out,
        for only even numbers are fair to both builds.
        """
        earlier = [pairs[: len(pairs) // 2 * 2] for pairs in tries]
        if not self.candidate or not any(earlier):
            return self
        level = _level(zip(self.baseline, self.candidate, strict=True))
        moved = [
            (first * scale, second * scale)
            for pairs in earlier
            if pairs
            for scale in (level / _level(pairs),)
            for first, second in pairs
        ]
        baseline, candidate = zip(*moved, strict=True)
        return replace(self, baseline=(*baseline, *self.baseline), candidate=(*candidate, *self.candidate))

    @property
    def gains(self) -> tuple[float, ...]:
        """Log ratios of its pairs, candidate to baseline, positive for the better."""
        return self.gains_of(zip(self.baseline, self.candidate, strict=True))

    def gains_of(self, pairs: Iterable[tuple[float, float]]) -> tuple[float, ...]:
        """Log ratios of any pairs of this measurand, candidate to baseline, positive for the better."""
        sign = 1.0 if self.better == "higher" else -1.0
        return tuple(sign * math.log(new / old) for old, new in pairs)

    @property
    def least_gain(self) -> float:
        """The gain below which a change is beyond the tolerance."""
        return math.log1p(-self.tolerance) if self.better == "higher" else -math.log1p(self.tolerance)

    def tolerated(self, earlier: int) -> bool:
        """Whether the pairs after so many earlier ones, by their median, lie within the tolerance."""
        return statistics.median(self.gains[earlier:]) >= self.least_gain

    def paired_change(self, confidence: float, odds: float) -> ChangeResult:
        """The change of samples that were taken in pairs; see `paired_change_interval`. Raises ValueError as that.

        Its verdict is the interval's; the evidence beside it may be looked at after every pair.

        Args:
            odds: that the evidence must reach, for what as many pairs resolve.
        """
        if self.known is not None:
            return self._change_by(self.known, confidence)
        change = self._judged(paired_change_interval(self.candidate, self.baseline, confidence), confidence)
        worse = 1.0 if self.better == "lower" else -1.0
        # In logs, as ratios are: twice the tolerance is the tolerance twice over.
        slower = 2 * math.log1p(worse * self.tolerance)
        raw = raw_log_ratios(self.candidate, self.baseline)
        ratios = winsorised(raw)
        gains = [-worse * ratio for ratio in ratios]
        losses = [-gain for gain in gains]
        distance = abs(slower)
        faster = log_likelihood_ratio(losses, -distance, 0.0)
        return replace(
            change,
            evidence=Evidence(
                slower=log_likelihood_ratio(gains, -distance, 0.0),
                faster=faster,
                pairs=len(ratios),
                deviation=sample_deviation(ratios),
                resolves=abs(math.expm1(worse * resolvable(sample_deviation(ratios), len(ratios), odds) / 2)),
                apart=sum(pulled != ratio for pulled, ratio in zip(ratios, raw, strict=True)),
                slower_if_drifting=drifting_likelihood_ratio(gains, -distance, 0.0),
                # What is not likelier better without a drift is not asked with one.
                faster_if_drifting=drifting_likelihood_ratio(losses, -distance, 0.0) if faster > 0 else faster,
                narrow=len(ratios) >= _FEWEST_NARROW and _reach(ratios, confidence) <= NARROW * distance / 2,
            ),
        )

    def _change_by(self, known: Deviation, confidence: float) -> ChangeResult:
        """The change of pairs whose deviation is known for the most part, and that no drift makes alike."""
        worse = 1.0 if self.better == "lower" else -1.0
        distance = abs(2 * math.log1p(worse * self.tolerance))
        ratios = raw_log_ratios(self.candidate, self.baseline)
        gains, losses = [-worse * ratio for ratio in ratios], [worse * ratio for ratio in ratios]
        now = known.with_values(ratios)
        half = t_quantile(0.5 + confidence / 2, now.freedom) * now.value / math.sqrt(len(ratios))
        centre = mean(ratios)
        told = Change(relative(centre), Interval(relative(centre - half), relative(centre + half)))
        slower, faster = (log_likelihood_ratio(each, -distance, 0.0, known) for each in (gains, losses))
        return replace(
            self._judged(told, confidence),
            evidence=Evidence(
                slower=slower, faster=faster, pairs=len(ratios), deviation=now.value,
                resolves=abs(math.expm1(worse * half)), slower_if_drifting=slower, faster_if_drifting=faster,
            ),
        )  # fmt: skip

    def change(
        self, confidence: float, between: Deviation | None = None, boots: tuple[int, int] = (1, 1)
    ) -> ChangeResult:
        """The change of samples that were not taken in pairs. Raises ValueError as the interval does.

        Args:
            between: what the logs of boots deviate by, see `change_interval_of_boots`. Where nobody knows, repeats show
                what the same boots would give again, see `change_interval`, and nothing of the next ones: a change for
                the worse is INCONCLUSIVE then, and one that is none is not judged.
            boots: how many boots the samples of candidate and baseline are of.

        Where a baseline scatters so much that Fieller's interval has no end, as two boots of a TCP round trip do, the
        interval is that of the logs of both means. It is wide, and no error, for the next boot shows more.
        """
        if between is not None:
            found = change_interval_of_boots(self.candidate, self.baseline, between, confidence, boots=boots)
            return replace(self._judged(found, confidence), boots_deviate=between.value)
        try:
            alone = change_interval(self.candidate, self.baseline, confidence)
        except ValueError:  # of other reasons the second says the same
            alone = change_interval_of_boots(self.candidate, self.baseline, _THE_SAME, confidence)
        judged = self._judged(alone, confidence)
        worse = judged.verdict in (Verdict.REGRESSION, Verdict.INCONCLUSIVE)
        return replace(judged, verdict=Verdict.INCONCLUSIVE if worse else Verdict.NO_BASELINE)

    def _judged(self, change: Change, confidence: float) -> ChangeResult:
        low, high = change.interval.low, change.interval.high
        return ChangeResult(
            measurand=self.measurand,
            change=change.estimate,
            lower=low,
            upper=high,
            confidence=confidence,
            tolerance=self.tolerance,
            baseline=mean(self.baseline),
            candidate=mean(self.candidate),
            unit=self.unit,
            better=self.better,
            verdict=_verdict(low, high, self.tolerance, self.better),
        )


def _reach(ratios: Sequence[float], confidence: float) -> float:
    """How far the t-interval of a mean reaches to either side, if neighbours are as alike as they may well be."""
    alike = likely_correlation(ratios)
    half = t_interval(ratios, confidence).width / 2
    return half * math.sqrt((1 + alike) / (1 - alike))


def _level(pairs: Iterable[tuple[float, float]]) -> float:
    """The geometric mean of all values."""
    return math.exp(mean([math.log(value) for pair in pairs for value in pair]))


def by_side(change: ChangeResult) -> Verdict:
    """What a change comes to by itself, without its interval: on which side of the tolerance it lies."""
    return _verdict(change.change, change.change, change.tolerance, change.better)


def _verdict(low: float, high: float, tolerance: float, better: Better) -> Verdict:
    """PASS when no part of the interval is worse than the tolerance, REGRESSION when all of it is."""
    worst, best = (low, high) if better == "higher" else (-high, -low)
    if best < -tolerance:
        return Verdict.REGRESSION
    if worst > tolerance:
        return Verdict.IMPROVEMENT
    return Verdict.PASS if worst >= -tolerance else Verdict.INCONCLUSIVE


def gravest_change(changes: Sequence[ChangeResult]) -> ChangeResult:
    """The change that decides: one for the worse before one that is not known, before one for the better.

    Of several for the worse the one that is worst against its tolerance. What was not resolved decides nothing.
    """
    order = (Verdict.REGRESSION, Verdict.INCONCLUSIVE, Verdict.NO_BASELINE, Verdict.IMPROVEMENT, Verdict.PASS)

    def rank(change: ChangeResult) -> tuple[bool, int, float]:
        worse = change.change if change.better == "higher" else -change.change
        return change.unresolved, order.index(change.verdict), worse + change.tolerance

    return min(changes, key=rank)


DOUBT = 0.02
"""How often pairs of one ratio are taken for those of two. Two fresh pairs beyond all of 13 earlier ones reach it, and
four beyond all of five."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """What the pairs of earlier tries and the fresh ones of a measurand come to: relative changes that are not one."""

    measurand: str
    earlier: float
    fresh: float
    slower: bool
    """Whether the earlier pairs show a change for the worse beyond the tolerance."""

    def __str__(self) -> str:
        return f"{self.measurand} {self.earlier:+z.1%} then, {self.fresh:+z.1%} now"


def contradiction(fresh: Samples, tries: Sequence[Pairs]) -> Contradiction | None:
    """How far the pairs of all earlier tries lie from the fresh ones, where chance alone hardly does that; else None.

    A test on ranks of their ratios, whose level holds for any distribution: neither heavy tails nor a pair that dips
    make two ratios of one.
    """
    then = fresh.gains_of(chain.from_iterable(tries))
    now = fresh.gains
    if rank_sum_p(now, then) > DOUBT:
        return None
    sign = 1.0 if fresh.better == "higher" else -1.0
    earlier, ours = (relative(sign * statistics.median(each)) for each in (then, now))
    return Contradiction(fresh.measurand, earlier, ours, slower=statistics.median(then) < fresh.least_gain)
