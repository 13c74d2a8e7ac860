"""What boots of a testbed deviate by: from observations to what can be told apart, and what is kept of them."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path

import pytest
from fake_testbed import Watcher
from hypothesis import given
from hypothesis import strategies as st
from known_noise import DAY, floor, observed, spread

from pdrgate.gate.verdicts.change_verdict import judged, remedy_of_boots, unpaired_changes
from pdrgate.gate.verdicts.noise_floor import (
    check_resolvable,
    noise_floor,
    remember,
    resolvable_in_words,
)
from pdrgate.history.address import Address
from pdrgate.history.database.experience import Experience
from pdrgate.measurands import lower_is_better
from pdrgate.replication import NoiseFloor, NoiseObservation, ObservedBoot, PairsRule, Samples, TrialScatter
from pdrgate.replication.noise import HALF_LIFE
from pdrgate.results.fingerprint import conditions
from pdrgate.results.verdict import Verdict
from pdrgate.stats.pooled import pooled_deviation
from pdrgate.stats.robust import dips
from pdrgate.values.errors import UsageError

PDR = "PDR"


# --- Deviations of several groups ---


def test_a_pooled_deviation_is_around_the_mean_of_each_group() -> None:
    found = pooled_deviation([[(1.0, 1.0), (3.0, 1.0)], [(101.0, 1.0), (103.0, 1.0)], [(7.0, 1.0)]])
    assert found is not None
    assert (found.value, found.freedom) == (pytest.approx(math.sqrt(2)), 2.0)
    assert pooled_deviation([[(1.0, 1.0)], []]) is None


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=20), st.floats(0.01, 1.0))
def test_equal_weights_change_how_well_it_is_known_and_nothing_else(values: list[float], weight: float) -> None:
    full, less = (
        pooled_deviation([[(one, 1.0) for one in values]]),
        pooled_deviation([[(one, weight) for one in values]]),
    )
    assert full is not None
    assert less is not None
    assert less.value == pytest.approx(full.value, abs=1e-9)
    assert less.freedom == pytest.approx(weight * (len(values) - 1))


def test_a_dip_lies_far_below_the_others() -> None:
    rest = [0.001 * math.sin(number) for number in range(15)]
    assert sum(dips([*rest, -0.2])) == 1
    assert not any(dips([*rest, 0.2]))
    assert not any(dips([*rest, -0.02]))  # not far enough to be one
    assert not any(dips([0.0] * 6 + [-0.5]))  # too few to tell
    source = random.Random(1)
    assert sum(any(dips([source.gauss(0, 0.05) for _ in range(16)])) for _ in range(400)) <= 4


# --- The floor ---


def test_pairs_and_boots_of_one_build() -> None:
    source = random.Random(1)
    found = NoiseFloor.seen([observed([source.gauss(0, 0.01) for _ in range(400)], when=0.0)], 0.0)
    assert (found.pairs, found.boots, found.measured) == (200, 400, 0.0)
    pdr = found.of(PDR)
    assert pdr.boots is not None
    assert pdr.pairs is not None
    assert pdr.boots.value == pytest.approx(0.01, rel=0.1)
    assert pdr.pairs.value == pytest.approx(0.01 * math.sqrt(2), rel=0.1)
    assert pdr.pairs.freedom == 199
    assert found.of("latency").known_boots is None


def test_what_moves_both_boots_of_a_pair_is_in_the_boots_and_not_in_the_pairs() -> None:
    levels = [0.03 * (number // 2) + 0.001 * (number * 7 % 5) for number in range(16)]
    pdr = NoiseFloor.seen([observed(levels, when=0.0)], 0.0).of(PDR)
    assert pdr.pairs is not None
    assert pdr.boots is not None
    assert pdr.drift is not None
    assert pdr.pairs.value < 0.004 < 0.05 < pdr.boots.value
    assert pdr.drift == pytest.approx(0.03 * 7, rel=0.05)


def test_what_is_old_is_forgotten() -> None:
    days = [observed(spread(0.01, 4), when=day * DAY) for day in range(4)]
    assert NoiseFloor.seen(days, 0.0).of(PDR).known_boots is not None
    assert NoiseFloor.seen(days, HALF_LIFE / 2).of(PDR).known_boots is not None
    assert NoiseFloor.seen(days, 2 * HALF_LIFE).of(PDR).known_boots is None
    four = days[:1]
    # A clock that was wrong makes nothing weigh more.
    assert NoiseFloor.seen(four, -HALF_LIFE).of(PDR).boots == NoiseFloor.seen(four, 0.0).of(PDR).boots
    noisier = [*four, observed(spread(0.03, 4), when=HALF_LIFE)]
    boots = NoiseFloor.seen(noisier, HALF_LIFE).of(PDR).boots
    assert boots is not None
    assert boots.value == pytest.approx(math.sqrt((0.5 * 3 * 0.01**2 + 3 * 0.03**2) / 4.5))


def test_single_runs_of_one_build_tell_what_days_deviate_by() -> None:
    """Boots of one hour agree; what is stored is of another day, so the larger of the two deviations counts."""
    hour = observed(spread(0.001), when=0.0)
    days = [
        NoiseObservation(
            when=0.0, boots=(ObservedBoot(build="one", boot=f"run-{n}", values={PDR: 1e6 * (1 + 0.01 * n)}),)
        )
        for n in range(5)
    ]
    boots = NoiseFloor.seen([hour, *days], 0.0).of(PDR).boots
    assert boots is not None
    assert boots.value == pytest.approx(0.0155, abs=0.0005)
    assert boots.freedom == 4
    # Of other builds nothing follows, and a boot that was measured twice is one.
    others = [
        NoiseObservation(when=0.0, boots=(ObservedBoot(build=str(n), boot=f"run-{n}", values={PDR: 1e6 + n}),))
        for n in range(5)
    ]
    assert NoiseFloor.seen(others, 0.0).of(PDR).boots is None
    twice = [
        NoiseObservation(when=0.0, boots=(ObservedBoot(build="one", boot="b", values={PDR: 1e6 + n}),))
        for n in range(5)
    ]
    assert NoiseFloor.seen(twice, 0.0).of(PDR).boots is None


def test_boots_that_dip_are_counted_and_left_out() -> None:
    levels = spread(0.002)
    levels[5] = -0.3
    pdr = NoiseFloor.seen([observed(levels, when=0.0)], 0.0).of(PDR)
    assert (pdr.dips, pdr.seen) == (1, 16)
    assert pdr.boots is not None
    assert pdr.boots.value < 0.003
    # Nor do they make a testbed one that resolves nothing.
    assert pdr.pairs is not None
    assert pdr.pairs.value < 0.004
    levels[9] = -0.5
    two = NoiseFloor.seen([observed(levels, when=0.0)], 0.0)
    assert resolvable_in_words(two, {PDR: 0.02}).endswith(" (PDR; 8 pairs so far, 2 of 16 boots dipped)")
    check_resolvable(two, {PDR: 0.02}, 48)


def test_what_is_no_number_is_passed_over() -> None:
    def boot(number: int, value: float) -> ObservedBoot:
        within = {PDR: TrialScatter(deviation=math.nan if number else 0.1, count=3)}
        return ObservedBoot(build="one", boot=str(number), pair=number // 2 + 1, values={PDR: value}, within=within)

    values = (1e6, math.nan, math.inf, -1.0, 0.0, 1.1e6)
    found = NoiseFloor.seen(
        [NoiseObservation(when=0.0, boots=tuple(boot(n, value) for n, value in enumerate(values))),
         NoiseObservation(when=math.nan, boots=(boot(9, 1e6),))], 0.0
    )  # fmt: skip
    assert found.boots == 2
    assert found.of(PDR).pairs is None
    assert found.of(PDR).within is not None


def test_more_pairs_resolve_less_and_the_rule_agrees() -> None:
    pdr = floor(0.01 / math.sqrt(2)).of(PDR)
    assert pdr.pairs is not None
    least = [pdr.resolves(pairs) or 0.0 for pairs in (4, 8, 16, 48)]
    assert least == sorted(least, reverse=True)
    needed = pdr.needs(0.02)
    assert needed is not None
    assert (pdr.resolves(needed) or 1.0) <= 0.02 < (pdr.resolves(needed - 2) or 0.0)
    assert pdr.needs(0.0001) is None
    source = random.Random(1)
    passed = 0
    for _ in range(200):
        ratios = [math.exp(source.gauss(0, pdr.pairs.value)) for _ in range(needed)]
        pairs = Samples(PDR, "packets/s", "higher", 0.02, (1e6,) * needed, tuple(1e6 * ratio for ratio in ratios))
        standing = PairsRule(most=needed, fewest=needed, fewest_scattered=needed).standing([pairs])
        passed += standing.verdict is Verdict.PASS
    assert passed >= 0.93 * 200


# --- One boot against one boot ---


def one_boot_each(
    change: float, deviation: float, known: NoiseFloor | None, rounds: int = 1000, seed: int = 1
) -> tuple[Counter[str], float]:
    """Shares of the verdicts on simulated boots, six repeats each, PDR and throughput of one level; how often the
    interval holds the true change."""
    source = random.Random(seed)
    said: Counter[str] = Counter()
    held = 0
    for _ in range(rounds):
        levels = [1e6 * math.exp(source.gauss(0, deviation)) for _ in range(2)]
        levels[1] *= 1 + change
        samples = [
            Samples(
                name, "packets/s", "higher", 0.02,
                *(tuple(level * math.exp(source.gauss(0, 0.003)) for _ in range(6)) for level in levels),
            )
            for name in (PDR, "saturation throughput")
        ]  # fmt: skip
        changes = unpaired_changes(samples, "simulated", known)
        said[str(judged(changes).verdict)] += 1
        held += changes[0].lower <= change <= changes[0].upper
    return said, held / rounds


@pytest.mark.parametrize("deviation", [0.002, 0.005, 0.01, 0.02, 0.05])
def test_an_unchanged_build_is_slower_in_less_than_one_of_a_hundred(deviation: float) -> None:
    """By its repeats alone it once was every fifth time, at 2 %."""
    said, held = one_boot_each(0.0, deviation, floor(deviation))
    assert said["REGRESSION"] <= 10
    assert held >= 0.965  # 97.5 % of each of two
    if deviation <= 0.002:
        assert said["PASS"] >= 950


def seen_on(days: int, deviation: float, source: random.Random) -> NoiseFloor:
    """Eight boots a day of one build, which agree within a day."""
    return NoiseFloor.seen(
        [
            observed([level + source.gauss(0, 0.002) for _ in range(8)], when=day * DAY)
            for day in range(days)
            for level in (source.gauss(0, deviation),)
        ],
        0.0,
    )


@pytest.mark.parametrize("days", [1, 2, 3, 6])
@pytest.mark.parametrize("deviation", [0.01, 0.02, 0.03])
def test_a_baseline_of_another_day_calls_no_unchanged_build_slower(days: int, deviation: float) -> None:
    """A simulation. By what the boots of one day deviate by alone 3, 18 and 27 of a hundred were."""
    source = random.Random(4)
    said: Counter[str] = Counter()
    for seed in range(100):
        said += one_boot_each(0.0, deviation, seen_on(days, deviation, source), rounds=4, seed=seed)[0]
    assert said["REGRESSION"] <= (8 if days >= 3 else 0)  # of 400
    if days < 3:
        assert set(said) <= {"INCONCLUSIVE", "NO_BASELINE"}


def test_until_three_days_are_seen_it_is_said_what_is_missing() -> None:
    known = seen_on(2, 0.01, random.Random(1))
    assert known.of(PDR).days_seen == 2
    equal = Samples(PDR, "packets/s", "higher", 0.02, (1e6, 1.001e6), (1e6, 1.001e6))
    said = remedy_of_boots(unpaired_changes([equal], "old", known, baseline_tells=False), known, "here.yaml")
    assert "2 of 3 days seen of one build" in said
    assert "boot the baseline's build beside this one (--kernel and --against)" in said
    assert said.endswith("on 3 days: pdrgate calibrate here.yaml")


def test_where_the_floor_is_known_from_few_boots_it_errs_as_seldom() -> None:
    source = random.Random(2)
    said: Counter[str] = Counter()
    held = 0.0
    for seed in range(250):
        known = NoiseFloor.seen(
            [observed([source.gauss(0, 0.02) for _ in range(2)], when=day * DAY) for day in range(3)], 0.0
        )
        found, share = one_boot_each(0.0, 0.02, known, rounds=4, seed=seed)
        said += found
        held += share / 250
    assert said["REGRESSION"] <= 10
    assert held >= 0.965


def test_a_slow_build_is_seen_where_boots_agree_and_left_open_where_they_do_not() -> None:
    assert one_boot_each(-0.04, 0.002, floor(0.002), rounds=200)[0]["REGRESSION"] >= 190
    assert one_boot_each(-0.04, 0.02, floor(0.02), rounds=200)[0]["PASS"] <= 2


@pytest.mark.parametrize("change", [0.0, -0.1])
def test_without_a_floor_no_boot_is_slower_and_none_passes(change: float) -> None:
    said, _ = one_boot_each(change, 0.02, None, rounds=200)
    assert set(said) <= {"INCONCLUSIVE", "NO_BASELINE"}
    assert said["INCONCLUSIVE"] == 200 or not change


def test_where_boots_dip_one_boot_is_never_slower() -> None:
    levels = spread(0.001)
    levels[3] = -0.3
    sound = [observed(spread(0.001), when=day * DAY) for day in range(1, 16)]
    dipping = NoiseFloor.seen([observed(levels, when=0.0), *sound], 0.0)
    slow = [Samples(PDR, "packets/s", "higher", 0.02, (1e6, 1.001e6, 1e6), (7e5, 7.01e5, 7e5))]
    changes = unpaired_changes(slow, "old", dipping)
    assert judged(changes).verdict is Verdict.INCONCLUSIVE
    assert remedy_of_boots(changes, dipping, "").startswith(
        "1 of 256 boots dip here, and boots deviate by 0.10% here: "
    )
    assert judged(unpaired_changes(slow, "old", floor(0.001))).verdict is Verdict.REGRESSION


# --- What is said, and what is refused ---


def one_day(deviation: float, boots: int = 16) -> NoiseFloor:
    """Of a testbed whose boots deviate by that, on the one day on which it was looked at."""
    return NoiseFloor.seen([observed(spread(deviation, boots), when=0.0)], 0.0)


def test_what_can_be_told_apart_is_said_of_the_hardest() -> None:
    tolerances = {PDR: 0.02, "cost": 0.01}
    assert resolvable_in_words(one_day(0.005), tolerances) == (
        "this testbed resolves a tolerance of 2.1 % with 4 pairs, 0.54 % with 16 pairs (cost; 8 pairs so far)"
    )
    assert "is not known yet: too few pairs of boots" in resolvable_in_words(NoiseFloor(), tolerances)


def test_of_what_is_better_when_it_is_less_pairs_resolve_as_a_comparison_says() -> None:
    """A latency that doubles is as far as a rate that halves: a tolerance of 100 % there, of 50 % here."""
    seen = observed(spread(0.3 / math.sqrt(2), 8), when=0.0)
    known = NoiseFloor.seen([seen], 0.0, lower_is_better())
    for name, better in ((PDR, "higher"), ("cost", "lower")):
        sides = [tuple(boot.values[name] for boot in seen.boots[side::2]) for side in (0, 1)]
        change = Samples(name, "", better, 0.3, *sides).paired_change(0.95, PairsRule().pass_odds)
        assert change.evidence is not None
        assert known.of(name).resolves(4) == pytest.approx(change.evidence.resolves)
    found = [known.of(name).resolves(8) or 0.0 for name in (PDR, "cost")]
    assert math.log1p(-found[0]) == pytest.approx(-math.log1p(found[1]))
    assert found[1] > 1.2 * found[0]


def comparisons(*deviations: float, boots: int = 16) -> NoiseFloor:
    """Of a testbed whose boots deviated by that in one comparison after the other."""
    return NoiseFloor.seen(
        [observed(spread(one, boots), when=float(number)) for number, one in enumerate(deviations)], len(deviations)
    )


def test_a_tolerance_below_what_all_pairs_resolve_is_refused() -> None:
    noisy = comparisons(0.05, 0.05, 0.06)
    check_resolvable(noisy, {PDR: 0.05}, 48)
    check_resolvable(NoiseFloor(), {PDR: 0.0}, 48)
    refused = r"^on this testbed 48 pairs resolve at best a tolerance of 1\.97% of PDR, by the quietest .*, and 1\.00% "
    with pytest.raises(UsageError, match=refused):
        check_resolvable(noisy, {PDR: 0.01}, 8)
    check_resolvable(noisy, {PDR: 0.01}, 500)


def test_a_machine_that_was_busy_once_or_twice_is_no_noisy_testbed() -> None:
    check_resolvable(comparisons(0.3), {PDR: 0.01}, 8)
    check_resolvable(comparisons(0.3, 0.3), {PDR: 0.01}, 8)
    check_resolvable(comparisons(0.3, 0.3, 0.3, 0.001), {PDR: 0.01}, 8)
    short = [observed(spread(0.001, 4), when=9.0)]
    assert len(short[0].boots) == 4  # two pairs, as most comparisons have
    noisy = [observed(spread(0.3, 16), when=float(number)) for number in range(3)]
    check_resolvable(NoiseFloor.seen([*noisy, *short], 9.0), {PDR: 0.01}, 8)
    with pytest.raises(UsageError, match="resolve at best"):
        check_resolvable(NoiseFloor.seen(noisy, 9.0), {PDR: 0.01}, 8)


def test_a_testbed_is_the_same_whatever_build_it_runs() -> None:
    entries = {"testbed": "a", "kernel": "6.1", "mitigations": "none", "cpu_model": "x"}
    assert conditions(entries) == {"testbed": "a", "cpu_model": "x"}


# --- In a history ---


def test_a_floor_is_that_of_the_history_and_a_fault_of_it_changes_no_verdict(tmp_path: Path) -> None:
    fingerprint, watcher = {"testbed": "rack"}, Watcher()
    kept = Experience(Address.beside(tmp_path))
    boots = observed(spread(0.01, 4), when=1.0).boots
    assert noise_floor(kept, fingerprint, watcher) == noise_floor(None, fingerprint) == NoiseFloor()
    for _ in range(2):  # of a run that is resumed
        remember(kept, fingerprint, boots, watcher)
    floor = noise_floor(kept, fingerprint, watcher)
    assert (floor.pairs, floor.boots) == (2, 4)
    known = floor.of(PDR).boots
    assert known is not None
    assert known.freedom == pytest.approx(3.0, abs=0.01)
    assert noise_floor(kept, {"testbed": "another"}) == NoiseFloor()
    assert watcher.sentences == []
    gone = Experience(Address(file=tmp_path))
    assert noise_floor(gone, fingerprint, watcher) == NoiseFloor()
    remember(gone, fingerprint, boots, watcher)
    assert [one.partition(":")[0] for one in watcher.sentences] == [
        "what is known of this testbed's noise cannot be read", "what boots deviate by is not kept"
    ]  # fmt: skip
