"""How often a gate errs, and what an answer costs it: ours beside the rules of others, on simulated SUTs.

    .venv/bin/python tests/bench/gate_quality.py [--comparisons 1000] [--tolerance 0.02]

No packet is sent: these say how rules behave and nothing about a machine. In the first table boots have a level of
their own that deviates by so much, and trials in a boot by 0.3 % more; the candidate is unchanged, slower by the
tolerance, and slower by twice that. The second shows what a SUT may do to a gate besides, unchanged and slower. In the
third is how far the mean of the pairs is off where pdrgate ends, and whether its interval holds the true change
(coverage.py has what is told of it); and the same of one boot against a stored one. In the last, the curve itself is
ill: there pdrgate's own trials are simulated one by one. At the end stand published experiments that are replayed, see
pastrami_replay.py. Seconds are of traffic: sending alone, the search included, median over the comparisons of unchanged
builds.

- pdrgate: pairs of boots, a sequential likelihood ratio test, and the checks on levels and ratios.
- one boot: six repeats of one boot against those of a stored one, where 8 pairs of equal boots have told what boots
  deviate by.
- repeats: the same by the repeats alone (Fieller's interval, Welch's degrees of freedom); what pdrgate once did.
- interval: pairs of boots, t-intervals at 99 % from the sixth pair on, at 95 % in the end; what pdrgate once did.
- MLR+2%: one MLRsearch a side, REGRESSION below -2 %.
- MLR+jumpavg: the same two results, in one group or in two (jumpavg, as in FD.io CSIT).
- jumpavg 10: ten trials of a boot a side, grouped by jumpavg.
- Welch: ten trials of a boot a side, Welch's t-test at 5 %.
- sweep: PASTRAMI's 50 trials at 8 loads a side, REGRESSION below -2 %.
- t-threshold: one search against twenty older runs, outside their t-interval of 99 % for a new value (as Bencher's).
- fence: the same against the lower inner fence of the older runs' changes (as rustc-perf's).
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import statistics
import sys
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Protocol

import jumpavg
from scipy.stats import ttest_ind

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fakes"))

from curves import EarlyLoss, Livelock
from flat_values import changed
from odd_machines import Drifts, HeavyTails, Ordered, Shifts, SlowBoots
from pastrami_replay import table
from simulated_sut import Behaviour, IdealCurve, LoadLoss, SimulatedSut

from pdrgate.gate.comparisons.pairs.pairs_shape import BuildsCurves, shape_of
from pdrgate.gate.run.profile import BOOT_GRID, BOOT_WIDTH, PROFILES, STEADY_TOP_TRIALS, TOP_TRIALS
from pdrgate.gate.scenarios.load_plan import grid, round_order
from pdrgate.gate.scenarios.replicate_samples import Measurands
from pdrgate.gate.verdicts.change_verdict import CHANGE_CONFIDENCE, unpaired_changes
from pdrgate.measurands import PartialDropRate, SaturationThroughput, Setting, Sweep
from pdrgate.record.trial import Trial
from pdrgate.replication import (
    Contradiction,
    NoiseFloor,
    NoiseObservation,
    ObservedBoot,
    PairsRule,
    Samples,
    Standing,
    contradiction,
)
from pdrgate.replication.samples import gravest_change
from pdrgate.results.model import Side
from pdrgate.search import mlr
from pdrgate.search.goals import NDR, PDR_GOAL, Goal
from pdrgate.search.mlr import search
from pdrgate.stats.intervals import change_interval, paired_change_interval, t_quantile

CAPACITY = 500e3
WITHIN = 0.003
"""Deviation of a trial from its boot's level."""
HISTORY = 20
SIDES: tuple[Side, Side] = ("baseline", "candidate")
TIMED = (PartialDropRate.about, SaturationThroughput.about)
NAMES = tuple(one.name for one in TIMED)
QUICK = PROFILES["quick"]
CSIT_GOALS = tuple(
    Goal(goal.name, goal.loss_ratio, 0.005, 1.0, 1.0, 21.0, 0.5, preceding_targets=2) for goal in (NDR, PDR_GOAL)
)


# --- SUTs: the level of each boot ---


@dataclass(frozen=True, slots=True)
class Sut:
    """How the boots of a build come out, relative to its capacity."""

    deviation: float
    """Of a boot's level."""
    dips: float = 0.0
    """Share of the boots that forward 20 to 40 % less."""
    slow: float = 0.0
    """The same of the candidate's boots alone."""
    flips: float = 0.0
    """How much less every other boot forwards, by chance."""
    shifts: float = 0.0
    """Deviation of what all pairs of a try are off by alike, from try to try."""

    def pairs(self, source: random.Random) -> Iterator[tuple[float, float]]:
        """Levels of the baseline's boot and of the candidate's, pair by pair."""
        while True:
            old = self.level(source)
            yield old, self.level(source, candidate=True)

    def level(self, source: random.Random, *, candidate: bool = False) -> float:
        level = 1 + source.gauss(0, self.deviation / math.sqrt(2))  # of a pair's ratio it is the whole deviation
        if source.random() < (self.dips + self.slow if candidate else self.dips):
            level *= 1 - source.uniform(0.2, 0.4)
        if self.flips and source.random() < 0.5:
            level *= 1 - self.flips
        return level


@dataclass(frozen=True, slots=True)
class Answer:
    """What a method said, and what it cost."""

    verdict: str
    boots: int
    """A side."""
    seconds: float
    """Of traffic."""
    error: float = 0.0
    """Of the change of the PDR that is told."""
    holds: bool = False
    """Whether its interval holds the true one."""


Method = Callable[[Sut, float, float, random.Random], Answer]
"""Of a SUT, the true change, the tolerance."""


# --- Methods ---

_SHORT_SEARCH = 5 * QUICK.boot_trial
_BOOT = (len(BOOT_GRID) + STEADY_TOP_TRIALS) * QUICK.boot_trial
"""Traffic of a boot of constant speed: the grid, the top trials beyond its own, and one below the knee."""
_OF_A_BOOT = WITHIN / math.sqrt(STEADY_TOP_TRIALS)
"""Deviation of a boot's value from its level."""
_CALIBRATED = 8
"""Pairs of equal boots that have told what boots deviate by."""
_RUN = QUICK.repeats * (len(QUICK.grid) + TOP_TRIALS) * QUICK.trial_duration
"""Traffic of a single run, without its search."""


_Values = dict[str, dict[Side, tuple[float, ...]]]
"""By measurand and side, one of each boot."""


class Pairs(Protocol):
    """What gives both builds' levels pair by pair, a try at a time."""

    def pairs(self, source: random.Random) -> Iterator[tuple[float, float]]: ...


def _pairs(sut: Pairs, change: float, source: random.Random, most: int) -> Iterator[_Values]:
    """What is known after each pair."""
    values: _Values = {name: dict.fromkeys(SIDES, ()) for name in NAMES}
    for old, new in itertools.islice(sut.pairs(source), most):
        for side, own in zip(SIDES, (old, new * (1 + change)), strict=True):
            level = CAPACITY * own
            for name in NAMES:
                values[name][side] += (level * (1 + source.gauss(0, WITHIN / math.sqrt(STEADY_TOP_TRIALS))),)
        yield values


def _samples(values: _Values, tolerance: float) -> list[Samples]:
    return [
        Samples(name, "packets/s", "higher", tolerance, own["baseline"], own["candidate"])
        for name, own in values.items()
    ]


@dataclass(frozen=True, slots=True)
class Ended:
    """A comparison that the rule has ended."""

    samples: list[Samples]
    """Of all pairs that count."""
    standing: Standing
    values: _Values
    """Of its own pairs."""
    pairs: int
    """The same."""
    taken_over: int
    """Pairs of earlier tries."""
    contradictions: tuple[Contradiction, ...] = ()
    """Why those do not count."""


def pdrgate(sut: Pairs, change: float, tolerance: float, source: random.Random) -> Answer:
    return judged(tried(sut, change, tolerance, source, 1)[0], (), change)


def judged(ended: Ended, earlier: Sequence[Ended], change: float) -> Answer:
    shape = shape_of(
        TIMED, ended.values, earlier=() if ended.contradictions else [one.values for one in earlier],
        contradictions=ended.contradictions,
    )  # fmt: skip
    veto = shape.veto(ended.standing, {})
    told = ended.standing.changes[0]
    return Answer(
        str(veto.verdict if veto else ended.standing.verdict), ended.pairs,
        2 * (_SHORT_SEARCH + ended.pairs * _BOOT), told.change - change, told.lower <= change <= told.upper,
    )  # fmt: skip


def tried(
    sut: Pairs,
    change: float,
    tolerance: float,
    source: random.Random,
    tries: int,
    *,
    afresh: bool = False,
    rule: PairsRule | None = None,
) -> list[Ended]:
    """A comparison that is tried so often, whatever each of them says."""
    found: list[Ended] = []
    for _ in range(tries):
        found.append(_ended(sut, change, tolerance, source, () if afresh else found, rule or PairsRule()))
    return found


def _ended(
    sut: Pairs, change: float, tolerance: float, source: random.Random, earlier: Sequence[Ended], rule: PairsRule
) -> Ended:
    pairs = {name: [tuple(zip(*one.values[name].values(), strict=True)) for one in earlier] for name in NAMES}
    known = sum(one.pairs for one in earlier)
    shifts = sut.shifts if isinstance(sut, Sut) else 0.0
    now = (1 + change) * math.exp(source.gauss(0, shifts)) - 1 if shifts else change
    for number, values in enumerate(_pairs(sut, now, source, rule.most), 1):
        if number % 2:
            continue  # the rule ends with an even number
        fresh = _samples(values, tolerance)
        apart = tuple(filter(None, (contradiction(one, pairs[one.measurand]) for one in fresh)))
        samples = fresh if apart else [one.after(pairs[one.measurand]) for one in fresh]
        standing = rule.standing(samples, earlier=0 if apart else known)
        if standing.verdict is not None:
            return Ended(samples, standing, values, number, 0 if apart else known, apart)
    raise AssertionError("the rule ends at its most pairs")


def one_boot(sut: Sut, change: float, tolerance: float, source: random.Random) -> Answer:
    boots = [CAPACITY * sut.level(source) * (1 + source.gauss(0, _OF_A_BOOT)) for _ in range(2 * _CALIBRATED)]
    seen = [
        ObservedBoot(build="same", boot=str(number), pair=number // 2 + 1, values=dict.fromkeys(NAMES, value))
        for number, value in enumerate(boots)
    ]
    # Two boots a day, on so many days that what days deviate by is known.
    days = [
        NoiseObservation(when=86400.0 * day, boots=tuple(seen[2 * day : 2 * day + 2])) for day in range(_CALIBRATED)
    ]
    floor = NoiseFloor.seen(days, 86400.0 * _CALIBRATED)
    found = unpaired_changes(_repeats(sut, change, tolerance, source), "stored", floor)
    told = found[0]
    holds = told.lower <= change <= told.upper
    return Answer(str(gravest_change(found).verdict), 1, 2 * _RUN, told.change - change, holds)


def repeats(sut: Sut, change: float, tolerance: float, source: random.Random) -> Answer:
    each = 1 - (1 - CHANGE_CONFIDENCE) / len(NAMES)
    found = []
    for one in _repeats(sut, change, tolerance, source):
        told = change_interval(one.candidate, one.baseline, each).interval
        low, high = told.low < -tolerance, told.high < -tolerance
        found.append("REGRESSION" if high else "INCONCLUSIVE" if low else "PASS")
    return Answer(min(found, key=("REGRESSION", "INCONCLUSIVE", "PASS").index), 1, 2 * _RUN)


def _repeats(sut: Sut, change: float, tolerance: float, source: random.Random) -> list[Samples]:
    levels = CAPACITY * sut.level(source), CAPACITY * (1 + change) * sut.level(source, candidate=True)
    return [
        Samples(
            name, "packets/s", "higher", tolerance,
            *(tuple(level * (1 + source.gauss(0, WITHIN)) for _ in range(QUICK.repeats)) for level in levels),
        )
        for name in NAMES
    ]  # fmt: skip


def interval(sut: Sut, change: float, tolerance: float, source: random.Random) -> Answer:
    for number, values in enumerate(_pairs(sut, change, source, 48), 1):
        last = number == 48
        if number < 6 or number % 2:
            continue
        for confidence in (0.99, 0.95) if last else (0.99,):
            found = [
                paired_change_interval(own["candidate"], own["baseline"], 1 - (1 - confidence) / 2).interval
                for own in values.values()
            ]
            cost = 2 * (_SHORT_SEARCH + number * _BOOT)
            if any(one.high < -tolerance for one in found):
                return Answer("REGRESSION", number, cost)
            if all(one.low >= -tolerance for one in found):
                return Answer("PASS", number, cost)
    return Answer("INCONCLUSIVE", 48, cost)


def _searched(sut: Sut, source: random.Random, change: float | None = None) -> float:
    """An MLRsearch's PDR, the candidate's where a change is given; it deviates by 0.1 % itself (its width is 0.5 %)."""
    level = sut.level(source, candidate=change is not None) * (1 + (change or 0.0))
    return CAPACITY * level * (1 + source.gauss(0, 0.0011))


def _said(change: float, tolerance: float) -> str:
    return "REGRESSION" if change < -tolerance else "PASS"


def mlr_fixed(sut: Sut, change: float, tolerance: float, source: random.Random) -> Answer:
    old, new = _searched(sut, source), _searched(sut, source, change)
    return Answer(_said(new / old - 1, tolerance), 1, 2 * csit_seconds())


def mlr_jumpavg(sut: Sut, change: float, tolerance: float, source: random.Random) -> Answer:
    old, new = _searched(sut, source), _searched(sut, source, change)
    return Answer(_grouped([old], [new]), 1, 2 * csit_seconds())


def _trials(sut: Sut, source: random.Random, change: float | None = None) -> list[float]:
    level = CAPACITY * sut.level(source, candidate=change is not None) * (1 + (change or 0.0))
    return [level * (1 + source.gauss(0, WITHIN)) for _ in range(10)]


def jumpavg_10(sut: Sut, change: float, tolerance: float, source: random.Random) -> Answer:
    old, new = _trials(sut, source), _trials(sut, source, change)
    return Answer(_grouped(old, new), 1, 20.0)


def welch(sut: Sut, change: float, tolerance: float, source: random.Random) -> Answer:
    old, new = _trials(sut, source), _trials(sut, source, change)
    slower = statistics.mean(new) < statistics.mean(old)
    found = slower and ttest_ind(old, new, equal_var=False).pvalue < 0.05
    return Answer("REGRESSION" if found else "PASS", 1, 20.0)


def sweep(sut: Sut, change: float, tolerance: float, source: random.Random) -> Answer:
    levels = CAPACITY * sut.level(source), CAPACITY * (1 + change) * sut.level(source, candidate=True)
    old, new = (level * (1 + source.gauss(0, WITHIN / math.sqrt(50))) for level in levels)
    return Answer(_said(new / old - 1, tolerance), 1, 2 * 8 * 50 * 10.0)


def t_threshold(sut: Sut, change: float, tolerance: float, source: random.Random) -> Answer:
    older = [_searched(sut, source) for _ in range(HISTORY)]
    new = _searched(sut, source, change)
    reach = t_quantile(0.99, HISTORY - 1) * statistics.stdev(older)
    return Answer("REGRESSION" if new < statistics.mean(older) - reach else "PASS", 1, csit_seconds())


def fence(sut: Sut, change: float, tolerance: float, source: random.Random) -> Answer:
    older = [_searched(sut, source) for _ in range(HISTORY)]
    new = _searched(sut, source, change)
    changes = [then / before - 1 for before, then in itertools.pairwise(older)]
    low, _, high = statistics.quantiles(changes, n=4)
    below = new / older[-1] - 1 < low - 1.5 * (high - low)
    return Answer("REGRESSION" if below else "PASS", 1, csit_seconds())


def _grouped(old: list[float], new: list[float]) -> str:
    groups = jumpavg.classify([old, new])
    return "REGRESSION" if len(groups) > 1 and groups[-1].comment == "regression" else "PASS"


METHODS: dict[str, Method] = {
    "pdrgate": pdrgate, "one boot": one_boot, "repeats": repeats, "interval": interval, "MLR+2%": mlr_fixed,
    "MLR+jumpavg": mlr_jumpavg, "jumpavg 10": jumpavg_10, "Welch": welch, "sweep": sweep, "t-threshold": t_threshold,
    "fence": fence,
}  # fmt: skip


@cache
def csit_seconds() -> float:
    """Traffic of an MLRsearch for NDR and PDR with CSIT's goals: the median of twenty, on a quiet SUT."""
    return statistics.median(_search_seconds(seed) for seed in range(20))


def _search_seconds(seed: int) -> float:
    clock = [0.0]
    mlr.time = types.SimpleNamespace(monotonic=lambda: clock[0])  # type: ignore[attr-defined]
    sut = SimulatedSut(IdealCurve(CAPACITY), Behaviour(WITHIN), seed=seed)

    def measure(load: float, duration: float) -> Trial:
        clock[0] += duration
        return sut.measure(load, duration)

    search(measure, CSIT_GOALS, min_load=CAPACITY / 100, max_load=1.5 * CAPACITY, budget=1200)
    return clock[0]


# --- Ill curves: our own trials, one by one ---


def ill(curve: Callable[[float], LoadLoss], modes: tuple[float, ...], seed: int, tolerance: float) -> Answer:
    """An unchanged build on a SUT whose boots deviate by 0.3 %; at most 8 pairs."""
    source = random.Random(seed)
    loads = grid(CAPACITY, BOOT_GRID, 1e9, highest=CAPACITY)
    measurands = Measurands.of(
        Setting(
            loads=tuple(loads),
            duration=QUICK.boot_trial,
            loss_ratio=PDR_GOAL.loss_ratio,
            top_trials=STEADY_TOP_TRIALS,
            width=BOOT_WIDTH,
        )
    )
    rule = PairsRule(most=8)
    trials: dict[Side, list[Trial]] = {side: [] for side in SIDES}
    values: dict[str, dict[Side, tuple[float, ...]]] = {name: dict.fromkeys(SIDES, ()) for name in NAMES}
    seconds = 2 * _SHORT_SEARCH
    for number in range(1, rule.most + 1):
        for side in SIDES:
            level = CAPACITY * (1 + source.gauss(0, 0.002))
            sut = SimulatedSut(curve(level), Behaviour(WITHIN, modes=modes), seed=source.getrandbits(32))
            own = _boot(sut, measurands, number, side)
            seconds += sum(trial.sending_time for trial in own)
            found = {one.name: one.value(own) for one in (measurands.pdr, measurands.saturation)}
            if None in found.values():
                return Answer("UNSTABLE", number, seconds)
            trials[side] += own
            for name in NAMES:
                values[name][side] += (found[name] or 0.0,)
        standing = rule.standing(_samples(values, tolerance))
        if standing.verdict is not None:
            shape = shape_of(TIMED, values, trials=trials, curves=BuildsCurves(PDR_GOAL.loss_ratio, "simulated"))
            veto = shape.veto(standing, dict(zip(SIDES, SIDES, strict=True)))
            return Answer(str(veto.verdict if veto else standing.verdict), number, seconds)
    raise AssertionError("the rule ends at its most pairs")


def _boot(sut: SimulatedSut, measurands: Measurands, number: int, side: Side) -> list[Trial]:
    trials: list[Trial] = []
    for step in measurands.steps(Sweep(round_order(_loads(measurands), number), QUICK.boot_trial))[:3]:
        while (ask := step.next(trials)) is not None:
            trial = sut.measure(ask.load, ask.duration)
            trials.append(changed(trial, phase=ask.phase, side=side, pair=number, boot=f"{side}-{number}"))
    return trials


def _loads(measurands: Measurands) -> tuple[float, ...]:
    top = measurands.saturation.load
    return tuple(load * top / BOOT_GRID[-1] for load in BOOT_GRID)


def low_loss(level: float) -> LoadLoss:
    return EarlyLoss(level, 0.0, 0.003)


ILL: dict[str, tuple[Callable[[float], LoadLoss], tuple[float, ...]]] = {
    "flips by 10 % from trial to trial": (IdealCurve, (1.0, 0.9)),
    "loses 0.3 % at all loads": (low_loss, (1.0,)),
    "livelocks at 1.3 of its capacity": (Livelock, (1.0,)),
    "ideal": (IdealCurve, (1.0,)),
}


# --- Odd machines ---

Said = tuple[str, int]
"""A verdict, and the pairs that it took."""


def once(sut: Pairs, change: float, tolerance: float, source: random.Random) -> Said:
    found = pdrgate(sut, change, tolerance, source)
    return found.verdict, found.boots


def retried(sut: Pairs, change: float, tolerance: float, source: random.Random) -> Said:
    """CI that tries a red build again, until it is green or has been tried four times."""
    each: list[Ended] = []
    for number in range(4):
        each.append(_ended(sut, change, tolerance, source, each, PairsRule()))
        found = judged(each[-1], each[:-1], change)
        if found.verdict in GREEN or number == 3:
            break
    return found.verdict, sum(one.pairs for one in each)


def twelve(sut: HeavyTails, change: float, tolerance: float, source: random.Random) -> Said:
    """A run of twelve scenarios, of which the noisiest deviates by so much and the quietest by a third of it."""
    rule = PairsRule(comparisons=12)
    found = []
    for number in range(12):
        own = HeavyTails(sut.deviation * (1 + number / 5.5) / 3)
        found.append(judged(tried(own, change, tolerance, source, 1, rule=rule)[0], (), change))
    words = [one.verdict for one in found]
    said = next((word for word in ("REGRESSION", "UNSTABLE", "INCONCLUSIVE") if word in words), "PASS")
    return said, max(one.boots for one in found)


ODD: dict[str, tuple[Callable[..., Said], Pairs, int]] = {
    "one side drifts by 3 %, alike by 0.8": (once, Drifts(0.8), 1),
    "... alike by 0.95": (once, Drifts(0.95), 1),
    "... by 1.5 %, alike by 0.8": (once, Drifts(0.8, 0.015), 1),
    "10 % of both sides' boots 5 % slower": (once, SlowBoots(0.1, 0.1), 1),
    "every second pair off by 3 %": (once, Ordered(), 1),
    "30 % of the candidate's boots 5 % slower": (once, SlowBoots(0.0, 0.3), 1),
    "heavy tails of 3 %": (once, HeavyTails(0.03), 1),
    "twelve scenarios of these, 1 to 3 %": (twelve, HeavyTails(0.03), 5),
    "a ratio of its own each try, by 2 %": (once, Shifts(), 1),
    "... tried again until green, four times": (retried, Shifts(), 1),
}
"""How it is asked, what does so, and by how much fewer comparisons than of others."""


def run_odd(name: str, change: float, comparisons: int, tolerance: float) -> tuple[dict[str, float], float]:
    """Shares of the verdicts, and the median of the pairs."""
    ask, sut, fewer = ODD[name]
    source = random.Random(f"{name} {change}")
    found = [ask(sut, change, tolerance, source) for _ in range(max(comparisons // fewer, 1))]
    count = Counter(word for word, _ in found)
    return {word: count[word] / len(found) for word in count}, statistics.median(pairs for _, pairs in found)


# --- Tables ---


@dataclass(frozen=True, slots=True)
class Cell:
    sut: Sut
    change: float
    method: str


@dataclass(frozen=True, slots=True)
class Summary:
    """Of the comparisons of a cell."""

    shares: dict[str, float]
    """Of the verdicts."""
    boots: float
    seconds: float
    """Medians."""
    error: float
    holds: float
    """Means."""

    @classmethod
    def of(cls, answers: list[Answer]) -> Summary:
        count = Counter(one.verdict for one in answers)
        return cls(
            {verdict: count[verdict] / len(answers) for verdict in count},
            statistics.median(one.boots for one in answers), statistics.median(one.seconds for one in answers),
            statistics.mean(one.error for one in answers), statistics.mean(one.holds for one in answers),
        )  # fmt: skip


def run(cell: Cell, comparisons: int, tolerance: float) -> Summary:
    source = random.Random(f"{cell}")
    return Summary.of([METHODS[cell.method](cell.sut, cell.change, tolerance, source) for _ in range(comparisons)])


def run_ill(name: str, comparisons: int, tolerance: float) -> Summary:
    return Summary.of([ill(*ILL[name], seed, tolerance) for seed in range(comparisons)])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=1000)
    parser.add_argument("--tolerance", type=float, default=0.02)
    options = parser.parse_args()
    began = time.monotonic()
    suts = {f"{deviation:.1%}": Sut(deviation) for deviation in (0.0, 0.005, 0.01, 0.03, 0.05)}
    odd = {
        "5 % of boots dip by 20 to 40 %": Sut(0.005, dips=0.05),
        "the same, boots deviate by 3 %": Sut(0.03, dips=0.05),
        "10 % of the candidate's boots do": Sut(0.005, slow=0.1),
        "30 % of the candidate's boots do": Sut(0.005, slow=0.3),
        "flips by 10 % from boot to boot": Sut(0.005, flips=0.1),
        "flips by 3 % from boot to boot": Sut(0.005, flips=0.03),
    }
    changes = (0.0, -options.tolerance, -2 * options.tolerance + options.tolerance**2)
    told: dict[tuple[str, str], tuple[Summary, Summary, Summary]] = {}
    with ProcessPoolExecutor(2) as pool:
        many = partial(pool.map, run)
        for title, group in (("boots deviate by", suts), ("", odd)):
            keys = [(name, method) for name in group for method in METHODS]
            cells = [Cell(group[name], change, method) for name, method in keys for change in changes]
            found = iter(list(many(cells, [options.comparisons] * len(cells), [options.tolerance] * len(cells))))
            print(f"\n{title or 'SUT':<36}{'':<13}{'unchanged':^33}{'-tolerance':^18}{'-2 tolerance':^33}", flush=True)
            print(
                f"{'':<36}{'':<13}{'PASS':>7}{'REGR':>7}{'IMPR':>6}{'INC':>6}{'UNST':>7}{'PASS':>9}{'REGR':>9}"
                f"{'PASS':>7}{'REGR':>7}{'IMPR':>6}{'INC':>6}{'UNST':>7}{'boots':>7}{'seconds':>9}"
            )  # fmt: skip
            for name, method in keys:
                same, edge, slower = next(found), next(found), next(found)
                if method in _TELLING:
                    told[name, method] = (same, edge, slower)
                print(
                    f"{name:<36}{method:<13}" + _shares(same) + "".join(f"{edge.shares.get(w, 0):>9.1%}" for w in _SAID)
                    + _shares(slower) + f"{same.boots:>7.0f}{same.seconds:>9.0f}", flush=True
                )  # fmt: skip
        print(f"\n{'boots deviate by':<36}{'error of the change':>30}{'97.5 % interval holds it':>33}")
        print(f"{'':<36}" + "".join(f"{change:>10.1%}" for change in changes) + f"{'':3}"
              + "".join(f"{change:>10.1%}" for change in changes))  # fmt: skip
        for name, method in itertools.product(suts, _TELLING):
            print(f"{name:<10}{method:<26}" + "".join(f"{one.error:>+10.2%}" for one in told[name, method]) + f"{'':3}"
                  + "".join(f"{one.holds:>10.1%}" for one in told[name, method]), flush=True)  # fmt: skip
        print(
            f"\n{'pdrgate, unchanged builds':<49}"
            f"{'PASS':>7}{'REGR':>7}{'IMPR':>6}{'INC':>6}{'UNST':>7}{'boots':>7}{'seconds':>9}"
        )
        comparisons = [options.comparisons] * len(ILL)
        for name, found_ill in zip(
            ILL, pool.map(run_ill, ILL, comparisons, [options.tolerance] * len(ILL)), strict=True
        ):
            print(f"{name:<49}" + _shares(found_ill) + f"{found_ill.boots:>7.0f}{found_ill.seconds:>9.0f}", flush=True)
        print(
            f"\n{'pdrgate':<41}{'unchanged':^33}{'':>7}{'-2 tolerance':^33}{'':>7}{'':>13}\n{'':<41}"
            + (f"{'PASS':>7}{'REGR':>7}{'IMPR':>6}{'INC':>6}{'UNST':>7}{'pairs':>7}" * 2)
            + f"{'comparisons':>13}"
        )
        ends = (0.0, changes[-1])
        jobs = {
            name: [pool.submit(run_odd, name, end, options.comparisons, options.tolerance) for end in ends]
            for name in ODD
        }
        for name, job in jobs.items():
            halves = [one.result() for one in job]
            print(
                f"{name:<41}" + "".join(f"{_words(shares)}{pairs:>7.0f}" for shares, pairs in halves)
                + f"{options.comparisons // ODD[name][2]:>13}", flush=True
            )  # fmt: skip
    print("\n".join(table(options.comparisons, options.tolerance)))
    print(f"\n{options.comparisons} comparisons a cell, {time.monotonic() - began:.0f} s")


_SAID = ("PASS", "REGRESSION")
GREEN = ("PASS", "IMPROVEMENT")
_TELLING = ("pdrgate", "one boot")
"""Methods of which the change that they tell is looked at."""


def _shares(found: Summary) -> str:
    return _words(found.shares)


def _words(shares: Mapping[str, float]) -> str:
    return "".join(
        f"{shares.get(word, 0):>{width}.1%}"
        for word, width in (("PASS", 7), ("REGRESSION", 7), ("IMPROVEMENT", 6), ("INCONCLUSIVE", 6), ("UNSTABLE", 7))
    )


if __name__ == "__main__":
    main()
