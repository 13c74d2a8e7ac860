"""A rule ends a comparison in pairs, and says what it came to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pdrgate.replication.samples import Samples, by_side, gravest_change
from pdrgate.results.model import ChangeResult
from pdrgate.results.verdict import Verdict
from pdrgate.stats.intervals import mean, relative, sample_deviation, t_quantile
from pdrgate.stats.pooled import Deviation
from pdrgate.stats.robust import deviation_about_median
from pdrgate.stats.sequential import pairs_to_resolve, stopping_bias

_LOOKED_AT = 4.0
"""The doubt of an interval is divided by this where pairs were looked at more than once: by two it holds too seldom,
by as many as there were looks it is wider than it need be."""

_SURELY = 0.99
"""How sure it must be that pairs deviate by no less, before a measurand is given up."""
_LEANS = 10.0
"""Odds of a slower build, at which a measurand counts that the noise keeps from its tolerance."""
_NOTHING = 1e-9
"""Evidence that is none."""
_SLOWER = 3
"""Times that evidence may grow slower than it did."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a comparison is after some pairs."""

    changes: tuple[ChangeResult, ...]
    """Changes of each measurand; empty below two pairs."""
    verdict: Verdict | None
    """What the pairs so far say; None while another pair is wanted."""


@dataclass(frozen=True, slots=True)
class PairsRule:
    """Pairs are taken until they distinguish an unchanged build from one slower by twice the tolerance, or are over.

    The rule is a sequential likelihood ratio test: however much pairs deviate, the bound is the same, and from some
    pairs on looks cost nothing. Each of several measurands may be the one that calls a REGRESSION wrongly. So each
    needs more evidence for it, and calls it once it has pairs enough of its own. PASS needs all measurands, and no more
    evidence of each. What is undecided when pairs or time are over is decided by half the odds, or stays undecided.
    tests/bench/gate_quality.py says how often the rule errs.
    """

    most: int = 48
    """Pairs of one try, at most."""
    fewest: int = 4
    """The fewest pairs that may end a comparison early: of fewer, the deviation is anybody's guess."""
    fewest_scattered: int = 8
    """The fewest pairs that may end a comparison early in a measurand in which a build's own boots deviate by more than
    half its tolerance.

    So many pairs distinguish flips between two levels from noise, and a dip from the rest. Other measurands need not
    wait.
    """
    fewest_known: int = 2
    """The fewest pairs that may end a comparison early in a measurand of which the deviation of pairs is known
    beforehand."""
    alone: frozenset[Verdict] = frozenset()
    """Verdicts that the first pair may end a comparison with, by the odds that it takes of more pairs, where the
    deviation of pairs is known beforehand and something else vouches for what this pair shows."""
    fewest_again: int = 2
    """The fewest pairs of a retry that goes on with as many pairs of earlier tries: it measures in any case, whatever
    those say."""
    pass_odds: float = 100.0
    """Odds of an unchanged build against one slower by twice the tolerance that PASS needs."""
    regression_odds: float = 200.0
    """Odds of a build slower by twice the tolerance against an unchanged one that REGRESSION needs: more, for few
    pairs make a deviation look small."""
    regression_odds_if_drifting: float = 100.0
    """Odds that REGRESSION needs where neighbouring pairs may be alike: few boots of a machine that drifts lie beside
    each other and look like a change."""
    pass_odds_if_drifting: float = 7.5
    """Odds that PASS needs where neighbouring pairs may be alike: less, for who looks again at a build that passed
    loses nothing by the first look."""
    affordable: int = 48
    """Pairs of one try that there is time for, about: what these do not resolve even at best is given up early."""
    fewest_unresolved: int = 6
    """Pairs after which a measurand may be given up that others need not wait for."""
    fewest_hopeless: int = 12
    """Pairs after which the measurand that the comparison is about may be given up: boots that come up at two levels
    show it from here on."""
    comparisons: int = 1
    """Comparisons of the run: any of them may be the one that calls a REGRESSION wrongly, and PASS needs all of
    them."""
    confidence: float = 0.95
    """The confidence of the intervals, for all measurands together."""

    def wants(self, pair: int, earlier: int = 0) -> bool:
        """Whether that pair is measured in any case, whatever the ones before it show; ``earlier`` as in `standing`."""
        if self.alone and pair == self.fewest_known and not earlier:
            return False
        fewest = max(self.fewest - earlier, self.fewest_again)
        return pair <= min(fewest, self.most) or (pair % 2 == 0 and pair <= self.most)

    def standing(self, samples: Sequence[Samples], *, earlier: int = 0, ended: bool = False) -> Standing:
        """What the pairs so far say.

        Args:
            earlier: how many of the pairs, the first of them, are of earlier tries, see `Samples.after`: further pairs
                of the same test, so that it errs no oftener for being tried again.
            ended: whether no further pair will come.
        """
        pairs = min((len(one.candidate) for one in samples), default=0)
        if pairs - earlier < 2:
            first = self._of_first_pair(samples) if pairs == 1 and not earlier else None
            return first or Standing((), Verdict.INCONCLUSIVE if ended else None)
        each = 1.0 - (1.0 - self.confidence) / len(samples)
        changes = tuple(one.paired_change(each, self.pass_odds) for one in samples)
        enough = tuple(pairs >= self._fewest(one) for one in samples)
        # Of two guests the one booted later is a little slower: only even numbers of pairs are fair to both.
        if any(enough) and pairs % 2 == 0:
            tested = tuple(
                replace(
                    one, verdict=self._tested(one, len(samples)) if asked else self._left(one, len(samples), few=True)
                )
                for one, asked in zip(changes, enough, strict=True)
            )
            tested = self._resolved(
                _borne_out(tested, samples, earlier), samples, min(self.most, self.affordable) + earlier
            )
            enough = tuple(asked or one.unresolved for one, asked in zip(tested, enough, strict=True))
            verdict = gravest_change([one for one, asked in zip(tested, enough, strict=True) if asked]).verdict
            if verdict is Verdict.REGRESSION or (all(enough) and verdict is not Verdict.INCONCLUSIVE):
                return Standing(tested, verdict)
            ended = ended or (pairs - earlier >= self.fewest_hopeless and _hopeless(tested[0]))
        if not ended and pairs - earlier < self.most:
            return Standing(changes, None)
        left = tuple(
            replace(one, verdict=self._left(one, len(samples), few=not asked))
            for one, asked in zip(changes, enough, strict=True)
        )
        left = self._resolved(_borne_out(left, samples, earlier), samples, pairs)
        return Standing(left, gravest_change(left).verdict)

    def _of_first_pair(self, samples: Sequence[Samples]) -> Standing | None:
        """What one pair says where it may end the comparison; None where it may not, or says another verdict."""
        if not self.alone or any(one.known is None for one in samples):
            return None
        each = 1.0 - (1.0 - self.confidence) / len(samples)
        changes = tuple(one.paired_change(each, self.pass_odds) for one in samples)
        tested = tuple(replace(one, verdict=self._tested(one, len(samples))) for one in changes)
        verdict = gravest_change(tested).verdict
        return Standing(tested, verdict) if verdict in self.alone else None

    def outlook(self, samples: Sequence[Samples], earlier: int = 0) -> tuple[int, int]:
        """Pairs of this try that the comparison ends with, about, from and to; ``earlier`` as in `standing`.

        Evidence grows by about as much with each pair as it did so far. The longer end allows for a third of that: of
        400 made-up comparisons 88 % ended within these numbers after two pairs, 92 % after three.
        """
        pairs = min((len(one.candidate) for one in samples), default=0)
        if pairs - earlier < 2:
            return _even(max(self.fewest - earlier, self.fewest_again, pairs - earlier + 1)), self.most
        most = self.most + earlier
        worse: list[tuple[float, int]] = []
        other: list[tuple[float, int]] = []
        for own, one in zip(samples, self.standing(samples, earlier=earlier).changes, strict=True):
            assert one.evidence is not None
            slower, drifting = one.evidence.slower, one.evidence.slower_if_drifting
            assert drifting is not None
            bounds = [bound[0 if slower > 0 else 1] for bound in self._bounds(len(samples))]
            # In a drift the first few pairs show nothing that grows.
            known = [(slower, bounds[0]), (drifting, bounds[1])] if slower * drifting > 0 else [(slower, bounds[0])]
            needed = max(bound * pairs / max(abs(found), _NOTHING) for found, bound in known)
            fewest = self._fewest(own) if pairs > 2 else self.fewest  # two values of a build deviate by anything
            (worse if slower > 0 else other).append((needed, fewest))
        first = min if worse else max  # one that is worse is enough; PASS needs all of them
        likely = first(needed for needed, _ in worse or other)
        least = min(most, _even(max(first(fewest for _, fewest in worse or other), pairs + 1)))
        longest = min(most, max(least, _even(math.ceil(min(_SLOWER * likely, most)))))
        return least - earlier, longest - earlier

    def told(self, standing: Standing, samples: Sequence[Samples], earlier: int = 0) -> tuple[ChangeResult, ...]:
        """The changes as they are reported when the comparison has ended: without the bias of when it ended.

        Each is corrected by its `stopping_bias`, as though it alone had ended the comparison. Its t-interval moves with
        it, and has a quarter of the doubt where the pairs were looked at more than once. So it holds the true change as
        often as it says, see tests/bench/coverage.py.

        Args:
            standing: what `standing` said of these samples.
            earlier: pairs of earlier tries among the samples, as in `standing`.
        """
        if not standing.changes:
            return ()
        return tuple(
            self._corrected(one, len(samples), self._fewest(own), earlier, known=own.known is not None)
            for one, own in zip(standing.changes, samples, strict=True)
        )

    def _corrected(
        self, change: ChangeResult, measurands: int, first: int, earlier: int, *, known: bool
    ) -> ChangeResult:
        evidence = change.evidence
        assert evidence is not None
        if known or evidence.pairs < first or not evidence.deviation or change.change <= -1:
            return change
        sign = 1.0 if change.better == "higher" else -1.0
        decided = self._tested(change, measurands) is not Verdict.INCONCLUSIVE
        last = earlier + self.most if decided else evidence.pairs
        looks = [*range(max(first, earlier + self.fewest_again), last, 2), last]
        centre = math.log1p(change.change)
        distance = -2 * abs(math.log1p(-sign * change.tolerance))
        centre -= sign * stopping_bias(
            sign * centre, evidence.deviation, (distance, 0.0), *self._bounds(measurands), looks
        )
        doubt = (1 - change.confidence) / (_LOOKED_AT if evidence.pairs > first else 1.0)
        half = t_quantile(1 - doubt / 2, evidence.pairs - 1) * evidence.deviation / math.sqrt(evidence.pairs)
        return replace(
            change, change=relative(centre), lower=relative(centre - half), upper=relative(centre + half)
        )  # fmt: skip

    def _left(self, change: ChangeResult, measurands: int, few: bool) -> Verdict:
        """What half the odds say; of pairs so few that the test does not ask them, what the interval says besides."""
        said = self._at_odds(change, measurands, 2.0)
        if few and (change.verdict is not Verdict.REGRESSION or said is Verdict.REGRESSION):
            return change.verdict
        return Verdict.INCONCLUSIVE if few else said

    def _fewest(self, samples: Samples) -> int:
        if samples.known is not None:
            return min(self.fewest_known, self.fewest)
        scattered = any(
            sample_deviation(own) > samples.tolerance / 2 * mean(own) for own in (samples.baseline, samples.candidate)
        )
        return self.fewest_scattered if scattered else self.fewest

    def _tested(self, change: ChangeResult, measurands: int) -> Verdict:
        return self._at_odds(change, measurands, 1.0)

    def _resolved(
        self, changes: Sequence[ChangeResult], samples: Sequence[Samples], most: int
    ) -> tuple[ChangeResult, ...]:
        """The changes, with what it would take where so many pairs do not decide one even at best.

        The first, which the comparison is about, is INCONCLUSIVE then. Of the others none is judged, unless the pairs
        are likelier of a slower build all the same.
        """
        return tuple(
            self._beyond_reach(one, own, most, first=number == 0)
            for number, (one, own) in enumerate(zip(changes, samples, strict=True))
        )

    def _beyond_reach(self, change: ChangeResult, samples: Samples, most: int, *, first: bool) -> ChangeResult:
        evidence = change.evidence
        assert evidence is not None
        fewest = self.fewest_hopeless if first else self.fewest_unresolved
        if change.verdict is not Verdict.INCONCLUSIVE or evidence.pairs < fewest or not change.tolerance:
            return change
        distance = 2 * abs(math.log1p(-change.tolerance if change.better == "higher" else change.tolerance))
        # Dips are no noise of the other pairs. With more pairs the two can be distinguished.
        deviation = min(evidence.deviation, deviation_about_median(samples.gains)[1])
        at_best = Deviation(deviation, evidence.pairs - 1).at_least(_SURELY)
        if pairs_to_resolve(at_best, distance, self.pass_odds) <= most:
            return change
        needs = pairs_to_resolve(evidence.deviation, distance, self.pass_odds)
        judged = first or evidence.slower > math.log(_LEANS)
        return replace(
            change, evidence=replace(evidence, needs=needs), verdict=change.verdict if judged else Verdict.NO_BASELINE
        )  # fmt: skip

    def _at_odds(self, change: ChangeResult, measurands: int, part: float) -> Verdict:
        """What the evidence says, by the odds that were asked divided by ``part``."""
        evidence = change.evidence
        assert evidence is not None
        assert evidence.slower_if_drifting is not None
        assert evidence.faster_if_drifting is not None
        (worse, same), (worse_if_drifting, same_if_drifting) = self._bounds(measurands, part)
        if evidence.slower >= worse and evidence.slower_if_drifting >= worse_if_drifting:
            return Verdict.REGRESSION
        if evidence.slower > -same or evidence.slower_if_drifting > -same_if_drifting:
            return by_side(change) if evidence.narrow else Verdict.INCONCLUSIVE
        better = evidence.faster >= worse and evidence.faster_if_drifting >= worse_if_drifting
        return Verdict.IMPROVEMENT if better else Verdict.PASS

    def _bounds(self, measurands: int, part: float = 1.0) -> tuple[tuple[float, float], tuple[float, float]]:
        """Logs of the odds of a slower build and an unchanged one: for independent pairs, and for those that drift."""
        return (
            (math.log(self.regression_odds / part * measurands * self.comparisons), math.log(self.pass_odds / part)),
            (math.log(self.regression_odds_if_drifting / part), math.log(self.pass_odds_if_drifting / part)),
        )


def _borne_out(changes: Sequence[ChangeResult], samples: Sequence[Samples], earlier: int) -> tuple[ChangeResult, ...]:
    """The changes, of which none passes by what earlier pairs say while the fresh ones lie beyond its tolerance."""
    return tuple(
        replace(one, verdict=Verdict.INCONCLUSIVE)
        if earlier and one.verdict.passes and not own.tolerated(earlier)
        else one
        for one, own in zip(changes, samples, strict=True)
    )


def _hopeless(change: ChangeResult) -> bool:
    """Whether no pairs that may be had decide what a comparison is about."""
    return change.verdict is Verdict.INCONCLUSIVE and change.evidence is not None and change.evidence.needs is not None


def _even(number: int) -> int:
    return number + number % 2
