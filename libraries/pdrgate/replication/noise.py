"""The noise floor of a testbed: what boots and pairs of boots of equal builds deviate by, and what that resolves."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pdrgate.replication.rule import PairsRule
from pdrgate.results.model import Better
from pdrgate.stats.intervals import log_ratios, mean, relative
from pdrgate.stats.pooled import Deviation, Weighed, pooled_deviation
from pdrgate.stats.ranks import monotone_trend
from pdrgate.stats.robust import FEWEST_WITH_DIPS, dips
from pdrgate.stats.sequential import resolvable

HALF_LIFE = 30 * 86400.0
"""Seconds after which an observation weighs half: machines change, and so do their users."""
KNOWN = 2.0
"""Degrees of freedom from which on a deviation is known: those of four boots, until half a month later."""
DAYS = 3
"""Days on which one build was measured, from which on what a day adds is known."""
_DAYS_FREEDOM = 1.5
"""Degrees of freedom of the days' values: those of three days, until a fortnight later."""
_DAY = 86400.0
COMPARISONS = 3
"""Comparisons with a known deviation of pairs, from which on it is known what a testbed does at best.

Others may have had the machine during one of them.
"""
_STATED = 1e6
"""Degrees of freedom of a deviation that needs no measuring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialScatter:
    """The deviation of the logs of trials within a boot, and how many there are."""

    deviation: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedBoot:
    """What a boot came to."""

    build: str
    """Digest of the build. Boots of one build are replicates."""
    boot: str
    """Identifier of the boot."""
    pair: int = 0
    """The number of its pair; 0: it is of none."""
    values: Mapping[str, float]
    """Values by measurand."""
    within: Mapping[str, TrialScatter] = field(default_factory=dict)
    """Scatter of the boot's trials, for each measurand that has a value in each trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseObservation:
    """Boots that were measured in one comparison or one run, on one testbed as its fingerprint has it."""

    when: float
    """Seconds of the epoch."""
    boots: tuple[ObservedBoot, ...]
    """Pairs have the baseline's boot first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurandNoise:
    """What is known of one measurand's noise; deviations are of logs. None is what is not known."""

    measurand: str
    better: Better = "higher"
    pairs: Deviation | None = None
    """The deviation of pairs' ratios: boots that dip are left out, lone ratios that lie apart pulled in as in a
    comparison."""
    quietest: Deviation | None = None
    """The deviation of pairs' ratios in the comparison in which it was surely least, of at least `COMPARISONS`."""
    boots: Deviation | None = None
    """The deviation from boot to boot of a build; boots that dip are left out."""
    days: Deviation | None = None
    """The deviation from day to day of a build, of the median of each day's boots."""
    days_seen: int = 0
    """Days on which one build was measured, of the build that was on most."""
    within: Deviation | None = None
    """The deviation from trial to trial within a boot."""
    drift: float | None = None
    """Relative change from the first to the last pair of the newest comparison."""
    dips: int = 0
    """Boots that lie far below the others of their build."""
    seen: int = 0
    """Boots that were looked at for that."""

    @property
    def known_boots(self) -> Deviation | None:
        """What a boot deviates by from one of another day, where boots and days enough were seen.

        What the days' values deviate by has a part of what boots do in it already; the sum is on the safe side.
        """
        if self.boots is None or self.boots.freedom < KNOWN or self.days is None or self.days_seen < DAYS:
            return None
        if self.days.freedom < _DAYS_FREEDOM:
            return None
        return Deviation(math.hypot(self.boots.value, self.days.value), min(self.boots.freedom, self.days.freedom))

    def resolves(self, pairs: int, *, at_best: bool = False) -> float | None:
        """The least tolerance that so many pairs decide, in some 95 of 100 comparisons of equal builds.

        Args:
            at_best: with the smallest deviation that agrees with the quietest comparison.
        """
        if at_best and self.quietest is not None:
            deviation = self.quietest.at_least()
        elif not at_best and self.pairs is not None and self.pairs.freedom >= KNOWN:
            deviation = self.pairs.value
        else:
            return None
        odds = PairsRule().pass_odds
        # The rule distinguishes twice the tolerance from no change.
        return self.as_tolerance(resolvable(deviation, pairs, odds) / 2)

    def as_tolerance(self, distance: float) -> float:
        """The change for the worse that a distance of logs is: a half is lost where another half is gained."""
        return -relative(-distance) if self.better == "higher" else relative(distance)

    def needs(self, tolerance: float) -> int | None:
        """The fewest pairs that decide a tolerance; None where the rule's most do not, or nobody knows."""
        rule = PairsRule()
        counts = range(rule.fewest, rule.most + 1, 2)
        return next((n for n in counts if (least := self.resolves(n)) is not None and least <= tolerance), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloor:
    """What the boots of one testbed deviate by."""

    measurands: Mapping[str, MeasurandNoise] = field(default_factory=dict)
    pairs: int = 0
    """How many pairs it rests on."""
    boots: int = 0
    """How many boots it rests on, those of pairs included."""
    measured: float | None = None
    """When the newest observation was made, seconds of the epoch; None: there is none."""

    def of(self, measurand: str) -> MeasurandNoise:
        """What is known of a measurand, if nothing else that nothing is."""
        return self.measurands.get(measurand, MeasurandNoise(measurand=measurand))

    @classmethod
    def stated(cls, measurands: Iterable[str], boots_deviate: float) -> NoiseFloor:
        """The floor that a person states: what the logs of boots deviate by, in all these measurands."""
        known = Deviation(boots_deviate, _STATED)
        no_more = Deviation(0.0, _STATED)
        return cls(
            measurands={
                name: MeasurandNoise(measurand=name, boots=known, days=no_more, days_seen=DAYS) for name in measurands
            }
        )

    @classmethod
    def seen(
        cls, observations: Iterable[NoiseObservation], now: float, less_is_better: Collection[str] = ()
    ) -> NoiseFloor:  # fmt: skip
        """The floor that observations of one testbed come to.

        Each weighs half as much as one that is `HALF_LIFE` younger, and so do its degrees of freedom. The deviation of
        boots is estimated within each comparison, and from boots of single runs of one build at whatever times. The
        larger of the two counts, for a stored result is of another time. What is not positive and finite is passed
        over.

        Args:
            now: seconds of the epoch.
            less_is_better: measurands of which that is so; of others more is.
        """
        sound = sorted((_sound(one) for one in observations), key=lambda one: one.when)
        sound = [one for one in sound if one.boots]
        weights = [min(1.0, 0.5 ** ((now - one.when) / HALF_LIFE)) for one in sound]
        names = dict.fromkeys(name for one in sound for boot in one.boots for name in boot.values)
        return cls(
            measurands={
                name: replace(
                    _noise(name, sound, weights), better="lower" if name in less_is_better else "higher"
                )
                for name in names
            },
            pairs=sum(len(_pairs(one)) for one in sound),
            boots=len({boot.boot for one in sound for boot in one.boots}),
            measured=sound[-1].when if sound else None,
        )  # fmt: skip


def _noise(name: str, observations: Sequence[NoiseObservation], weights: Sequence[float]) -> MeasurandNoise:
    paired: _Levels = defaultdict(lambda: defaultdict(list))
    alone: _Levels = defaultdict(lambda: defaultdict(list))
    within = []
    for number, (one, weight) in enumerate(zip(observations, weights, strict=True)):
        for boot in one.boots:
            if name in boot.values:
                own = paired[number, boot.build] if boot.pair else alone[0, boot.build]
                own[boot.boot].append((math.log(boot.values[name]), weight))
            if (scatter := boot.within.get(name)) is not None and scatter.count > 1:
                within.append((scatter, weight))
    (compared, dips_compared, seen_compared), (run, dips_run, seen_run) = map(_of_boots, (paired, alone))
    ratios, drift = [], None
    for number, (one, weight) in enumerate(zip(observations, weights, strict=True)):
        pairs = [
            (first.values[name], second.values[name])
            for first, second in _pairs(one)
            if name in first.values
            and name in second.values
            and not {(number, boot.build, boot.boot) for boot in (first, second)} & dips_compared
        ]
        if len(pairs) > 1:
            ratios.append([(ratio, weight) for ratio in log_ratios(*zip(*pairs, strict=True))])
            found = monotone_trend([math.sqrt(first * second) for first, second in pairs])
            drift = found.change if found is not None else drift
    days, days_seen = _of_days(name, observations, weights)
    return MeasurandNoise(
        measurand=name, pairs=pooled_deviation(ratios), quietest=_quietest(ratios),
        boots=_larger(compared, run), within=_within(within),
        drift=drift,
        dips=len(dips_compared) + len(dips_run), seen=seen_compared + seen_run, days=days, days_seen=days_seen,
    )  # fmt: skip


def _quietest(comparisons: Sequence[Sequence[Weighed]]) -> Deviation | None:
    """Deviation of pairs in the comparison whose pairs agree with the least, old ones too; None below `COMPARISONS`
    such comparisons."""
    pooled = [pooled_deviation([[(value, 1.0) for value, _ in ratios]]) for ratios in comparisons]
    known = [one for one in pooled if one is not None]
    return min(known, key=lambda one: one.at_least()) if len(known) >= COMPARISONS else None


def _of_days(
    name: str, observations: Sequence[NoiseObservation], weights: Sequence[float]
) -> tuple[Deviation | None, int]:
    """Deviation of a build's days, where the median of its boots stands for a day; and the most days of one build."""
    days: dict[str, dict[int, list[Weighed]]] = defaultdict(lambda: defaultdict(list))
    for one, weight in zip(observations, weights, strict=True):
        for boot in one.boots:
            if name in boot.values:
                days[boot.build][int(one.when // _DAY)].append((math.log(boot.values[name]), weight))
    medians = [
        [(statistics.median(value for value, _ in own), max(weight for _, weight in own)) for own in each.values()]
        for each in days.values()
    ]
    return pooled_deviation(medians), max(map(len, medians), default=0)


_Levels = dict[tuple[int, str], dict[str, list[Weighed]]]
"""The logs of each boot, by observation and build."""


def _of_boots(groups: _Levels) -> tuple[Deviation | None, set[tuple[int, str, str]], int]:
    """Deviation of boots, without those that dip; the boots that dip; and the number of boots that were looked at for
    that.

    What was measured twice in one boot is one boot.
    """
    left: list[list[Weighed]] = []
    dipped: set[tuple[int, str, str]] = set()
    seen = 0
    for (number, build), group in groups.items():
        boots = {
            boot: (mean([value for value, _ in own]), max(weight for _, weight in own)) for boot, own in group.items()
        }
        low = dict(zip(boots, dips([value for value, _ in boots.values()]), strict=True))
        left.append([each for boot, each in boots.items() if not low[boot]])
        dipped |= {(number, build, boot) for boot, dip in low.items() if dip}
        seen += len(boots) if len(boots) >= FEWEST_WITH_DIPS else 0
    return pooled_deviation(left), dipped, seen


def _larger(one: Deviation | None, other: Deviation | None) -> Deviation | None:
    """The larger of two deviations that are known; else the one that is known better."""
    found = [each for each in (one, other) if each is not None]
    known = [each for each in found if each.freedom >= KNOWN]
    if known:
        return max(known, key=lambda each: each.value)
    return max(found, key=lambda each: each.freedom, default=None)


def _within(scatters: Sequence[tuple[TrialScatter, float]]) -> Deviation | None:
    freedom = math.fsum(weight * (one.count - 1) for one, weight in scatters)
    if not freedom:
        return None
    squares = math.fsum(weight * (one.count - 1) * one.deviation**2 for one, weight in scatters)
    return Deviation(math.sqrt(squares / freedom), freedom)


def _pairs(observation: NoiseObservation) -> list[tuple[ObservedBoot, ObservedBoot]]:
    """The pairs that are whole, in measured order."""
    found: dict[int, list[ObservedBoot]] = defaultdict(list)
    for boot in observation.boots:
        if boot.pair:
            found[boot.pair].append(boot)
    return [(own[0], own[1]) for _, own in sorted(found.items()) if len(own) == 2]


def _sound(observation: NoiseObservation) -> NoiseObservation:
    boots = [
        ObservedBoot(
            build=boot.build, boot=boot.boot, pair=boot.pair,
            values={name: value for name, value in boot.values.items() if 0 < value < math.inf},
            within={name: one for name, one in boot.within.items() if 0 <= one.deviation < math.inf},
        )
        for boot in observation.boots
    ]  # fmt: skip
    known = math.isfinite(observation.when)
    return NoiseObservation(when=observation.when, boots=tuple(boot for boot in boots if boot.values) if known else ())
