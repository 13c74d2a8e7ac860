"""The rule that ends a comparison in pairs, and says what came of it: one for both."""

from __future__ import annotations

import dataclasses
import math
import random
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdrgate.gate.verdicts.change_verdict import judged
from pdrgate.replication import PairsRule, Samples
from pdrgate.replication.samples import gravest_change
from pdrgate.results.verdict import Verdict

RULE = PairsRule()


def samples(ratios: list[float], name: str = "PDR", tolerance: float = 0.02) -> Samples:
    """Pairs of a baseline that drifts, which drops out."""
    base = [1e6 * (1 + 0.001 * number) for number in range(len(ratios))]
    return Samples(
        name, "packets/s", "higher", tolerance, tuple(base),
        tuple(value * ratio for value, ratio in zip(base, ratios, strict=True)),
    )  # fmt: skip


def around(centre: float, pairs: int, deviation: float = 0.003, seed: int = 1) -> list[float]:
    source = random.Random(seed)
    return [centre * (1 + source.gauss(0, deviation)) for _ in range(pairs)]


def both(pdr: list[float], saturation: list[float]) -> list[Samples]:
    return [samples(pdr), samples(saturation, "saturation throughput")]


@pytest.mark.parametrize(
    ("pdr", "saturation", "verdict", "which"),
    [
        (1.0, 1.0, Verdict.PASS, None),
        (0.9, 0.9, Verdict.REGRESSION, None),
        (0.8, 1.0, Verdict.REGRESSION, "PDR"),
        (1.0, 0.8, Verdict.REGRESSION, "saturation throughput"),
        (1.1, 0.8, Verdict.REGRESSION, "saturation throughput"),
        (1.1, 1.1, Verdict.IMPROVEMENT, None),
        (1.1, 1.0, Verdict.IMPROVEMENT, "PDR"),
    ],
)
def test_four_pairs_tell_what_is_plain(pdr: float, saturation: float, verdict: Verdict, which: str | None) -> None:
    for pairs in range(4):
        assert RULE.standing(both(around(pdr, pairs), around(saturation, pairs, seed=2))).verdict is None
    found = RULE.standing(both(around(pdr, 4), around(saturation, 4, seed=2)))
    assert found.verdict is verdict
    assert which is None or gravest_change(found.changes).measurand == which
    # 95 % for both measurands together.
    assert {change.confidence for change in found.changes} == {0.975}


def test_below_two_pairs_there_is_no_change() -> None:
    for pairs in (0, 1):
        assert RULE.standing(both([1.0] * pairs, [1.0] * pairs)).changes == ()
        ended = RULE.standing(both([1.0] * pairs, [1.0] * pairs), ended=True)
        assert ended.verdict is Verdict.INCONCLUSIVE


def test_only_even_numbers_of_pairs_are_fair_to_both_builds() -> None:
    assert RULE.standing(both(around(0.9, 7), around(0.9, 7))).verdict is None
    assert RULE.standing(both(around(0.9, 7), around(0.9, 7)), ended=True).verdict is Verdict.REGRESSION


def test_a_doubtful_measurand_keeps_the_comparison_open_until_it_is_over() -> None:
    doubtful = both(around(1.0, 8), around(0.98, 8, 0.01, seed=4))
    assert RULE.standing(doubtful).verdict is None
    assert RULE.standing(doubtful, ended=True).verdict is Verdict.INCONCLUSIVE
    assert PairsRule(most=8).standing(doubtful).verdict is Verdict.INCONCLUSIVE


def test_a_regression_of_one_measurand_needs_no_certainty_about_the_other() -> None:
    found = RULE.standing(both(around(0.8, 8), around(0.98, 8, 0.05)))
    assert found.verdict is Verdict.REGRESSION


@given(
    st.lists(st.floats(0.5, 1.5), min_size=2, max_size=20),
    st.floats(0, 0.1),
    st.booleans(),
)
def test_what_ends_a_comparison_is_what_it_says(ratios: list[float], tolerance: float, ended: bool) -> None:
    """When the rule stops by itself, stopping it says the same: no second rule judges otherwise."""
    given_ = [samples(ratios, tolerance=tolerance)]
    standing = RULE.standing(given_, ended=ended)
    if standing.verdict is None:
        assert not ended
        return
    assert standing.verdict is gravest_change(standing.changes).verdict
    assert RULE.standing(given_, ended=True) == standing


@pytest.mark.parametrize(("change", "wrong", "right"), [(0.0, "REGRESSION", "PASS"), (-0.0396, "PASS", "REGRESSION")])
def test_looked_at_after_every_second_pair_it_errs_in_one_of_a_hundred(change: float, wrong: str, right: str) -> None:
    """For builds that are equal, or twice the tolerance apart, where pairs deviate by half as much again as that."""
    source = random.Random(1)
    said = Counter()
    for _ in range(400):
        pdr, saturation = [], []
        for _ in range(48):
            pdr.append((1 + change) * (1 + source.gauss(0, 0.03)))
            saturation.append((1 + change) * (1 + source.gauss(0, 0.03)))
            standing = RULE.standing(both(pdr, saturation))
            if standing.verdict is not None:
                said[str(standing.verdict)] += 1
                break
    assert said[wrong] <= 4
    assert said[right] >= 0.95 * 400


def test_a_change_beyond_doubt_whose_interval_spans_the_tolerance_says_why_it_is_decided() -> None:
    for seed in range(200):
        found = RULE.standing([samples(around(0.97, 16, deviation=0.02, seed=seed))])
        if found.verdict is Verdict.REGRESSION and found.changes[0].upper > -0.02:
            assert re.search(
                r"; (over )?\d+ times likelier worse by 4.0% than unchanged$", judged(found.changes).reason
            )
            return
    raise AssertionError("no such regression in 200")


def test_a_tolerance_of_nothing_is_a_test_of_the_sign() -> None:
    assert RULE.standing([samples(around(0.99, 24), tolerance=0.0)]).verdict is Verdict.REGRESSION
    assert RULE.standing([samples(around(1.01, 24), tolerance=0.0)]).verdict is Verdict.IMPROVEMENT
    assert RULE.standing([samples(around(1.0, 8), tolerance=0.0)]).verdict is None


@given(st.lists(st.floats(0.2, 5.0), min_size=2, max_size=12), st.floats(0.001, 0.5))
def test_faster_and_slower_are_mirrored(ratios: list[float], tolerance: float) -> None:
    """The evidence against a build is the evidence for it when the two change places, in either direction."""
    ratios = [ratio * (1 + number / 100) for number, ratio in enumerate(ratios)]  # equal ones have no deviation
    forth, back = samples(ratios, tolerance=tolerance), samples(ratios, tolerance=tolerance)
    back = dataclasses.replace(back, baseline=forth.candidate, candidate=forth.baseline)
    one, other = (found.paired_change(0.95, 100).evidence for found in (forth, back))
    assert one is not None
    assert other is not None
    assert (one.slower, one.faster) == pytest.approx((other.faster, other.slower), rel=1e-3, abs=1e-3)
    lower = dataclasses.replace(back, better="lower").paired_change(0.95, 100).evidence
    assert lower is not None
    assert lower.deviation == pytest.approx(one.deviation)


def test_the_more_comparisons_a_run_has_the_more_a_regression_asks() -> None:
    ratios = [samples(around(0.96, 24, deviation=0.02, seed=1))]
    assert RULE.standing(ratios).verdict is Verdict.REGRESSION
    assert PairsRule(comparisons=10**9).standing(ratios).verdict is None
    equal = [samples(around(1.0, 4))]
    assert PairsRule(comparisons=100).standing(equal).verdict is Verdict.PASS


def test_at_the_end_a_regression_needs_evidence_too() -> None:
    """Of very few or very noisy pairs an interval alone is beyond the tolerance too often, in a run of many."""
    ratios = [samples(around(0.85, 3, deviation=0.004, seed=2))]
    assert PairsRule().standing(ratios, ended=True).verdict is Verdict.REGRESSION
    assert PairsRule(comparisons=10_000).standing(ratios, ended=True).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(("ratio", "verdict"), [(0.982, Verdict.PASS), (0.978, Verdict.REGRESSION)])
def test_a_change_at_the_tolerance_is_told_by_its_side_within_eight_pairs(ratio: float, verdict: Verdict) -> None:
    """Once forty pairs, and INCONCLUSIVE, though the interval of the first eight had left nothing to learn."""
    for seed in range(20):
        ratios = around(ratio, 8, deviation=0.001, seed=seed)
        found = next(
            one for pairs in (4, 6, 8) if (one := RULE.standing([samples(ratios[:pairs])])).verdict is not None
        )
        assert found.verdict is verdict
        change = dataclasses.replace(found.changes[0], lower=-0.025, upper=-0.015)
        assert "close to the tolerance; more pairs would change nothing that matters" in judged([change]).reason


def noisy(deviation: float, pairs: int, name: str = "RTT inflation", centre: float = 1.0, seed: int = 3) -> Samples:
    return samples(around(centre, pairs, deviation, seed), name)


def test_a_measurand_that_noise_keeps_from_its_tolerance_holds_nobody() -> None:
    """RTT inflation once held a comparison for 31 pairs of which two had told the cost."""
    rule = PairsRule(affordable=14)
    found = rule.standing([samples(around(1.0, 6)), noisy(0.2, 6)])
    assert found.verdict is Verdict.PASS
    assert [one.verdict for one in found.changes] == [Verdict.PASS, Verdict.NO_BASELINE]
    needs = found.changes[1].evidence.needs  # type: ignore[union-attr]
    assert needs is not None
    assert needs > 100
    assert f"not resolved: pairs deviate by {found.changes[1].evidence.deviation:.1%}" in judged(found.changes).reason  # type: ignore[union-attr]
    assert f"would take some {needs} pairs" in judged(found.changes).reason
    assert rule.standing([samples(around(0.9, 6)), noisy(0.2, 6)]).verdict is Verdict.REGRESSION


def test_what_a_comparison_is_about_is_inconclusive_at_once_where_noise_hides_it() -> None:
    rule = PairsRule(affordable=14)
    for first in ([noisy(0.2, 12)], [noisy(0.2, 12), samples(around(1.0, 12), "cost")]):
        found = rule.standing(first)
        assert found.verdict is Verdict.INCONCLUSIVE
        assert "would decide a tolerance of 2.0%" in judged(found.changes).reason
    assert PairsRule().standing([noisy(0.03, 12, centre=0.972)]).verdict is None  # 48 pairs may well do


def test_a_measurand_that_is_likely_slower_is_not_passed_over_for_its_noise() -> None:
    found = PairsRule(affordable=12).standing([samples(around(1.0, 12)), noisy(0.1, 12, centre=0.87)], ended=True)
    assert found.changes[1].verdict is not Verdict.NO_BASELINE
    assert found.verdict in (Verdict.INCONCLUSIVE, Verdict.REGRESSION)


def test_an_improvement_whose_interval_spans_the_tolerance_says_why_it_is_one() -> None:
    for seed in range(200):
        found = RULE.standing([samples(around(1.03, 16, deviation=0.02, seed=seed))])
        if found.verdict is Verdict.IMPROVEMENT and found.changes[0].lower < 0.02:
            assert re.search(
                r"; (over )?\d+ times likelier better by 4.0% than unchanged", judged(found.changes).reason
            )
            return
    raise AssertionError("no such improvement in 200")


def test_a_wide_tolerance_is_doubled_as_ratios_are() -> None:
    change = samples([0.35, 0.65, 0.4, 0.6, 0.3, 0.5], tolerance=0.5).paired_change(0.95, 100)
    assert change.lower < -0.5 < change.upper
    told = judged([dataclasses.replace(change, verdict=Verdict.REGRESSION)]).reason
    assert "times likelier worse by 75.0% than unchanged" in told


def test_a_pair_that_lies_apart_is_told() -> None:
    ratios = around(1.0, 8, deviation=0.006, seed=5)
    ratios[3] = 0.7
    found = RULE.standing([samples(ratios)])
    assert found.verdict is Verdict.PASS
    assert "; 1 of 8 pairs lie apart and count for less" in judged(found.changes).reason
    ratios[5] = 0.7
    assert RULE.standing([samples(ratios)]).verdict is None  # two of eight are no lone dip


def test_where_boots_scatter_eight_pairs_are_the_fewest() -> None:
    """In four pairs a build whose boots come up at two levels may show one of them by chance."""
    levels = [1e6, 0.9e6, 0.9e6, 1e6, 0.9e6, 1e6, 1e6, 0.9e6]
    for pairs in (4, 6, 8):
        own = tuple(levels[:pairs])
        found = RULE.standing([Samples("PDR", "packets/s", "higher", 0.02, own, tuple(value * 1.001 for value in own))])
        assert (found.verdict is None) is (pairs < 8)


def test_what_scatters_keeps_no_other_measurand_from_its_regression() -> None:
    """A cost that one odd boot makes doubtful must not hold up what the PDR has shown; PASS waits for both."""
    own = (5000.0, 5004.0, 5060.0, 4996.0)
    odd = Samples("cost", "instructions/packet", "lower", 0.01, own, tuple(value * 1.08 for value in own))
    slower = [samples([0.925, 0.927, 0.926, 0.925]), odd]
    found = RULE.standing(slower)
    assert found.verdict is Verdict.REGRESSION
    assert [one.verdict for one in found.changes] == [Verdict.REGRESSION, Verdict.REGRESSION]
    assert RULE.outlook([slower[0]]) == RULE.outlook(slower)
    assert RULE.standing([odd]).verdict is None
    assert RULE.standing([samples(around(1.0, 4)), odd]).verdict is None


# --- Machines that drift, and what the order of a pair's boots does ---


def drifting(source: random.Random, alike: float, pairs: int = 48) -> list[float]:
    """Ratios of equal builds of which neighbours are alike; they deviate by 3 %."""
    level, found = source.gauss(0, 1), []
    for _ in range(pairs):
        found.append(math.exp(0.03 * level))
        level = alike * level + math.sqrt(1 - alike**2) * source.gauss(0, 1)
    return found


@pytest.mark.parametrize(("alike", "most"), [(0.8, 0.03), (0.95, 0.09)])
def test_equal_builds_on_a_machine_that_drifts_are_seldom_called_slower(alike: float, most: float) -> None:
    """A simulation. By independent pairs alone 14 and 22 of a hundred are."""
    source, wrong = random.Random(7), 0
    for _ in range(200):
        ratios = drifting(source, alike)
        verdicts = (RULE.standing([samples(ratios[:pairs])]).verdict for pairs in range(4, 49, 2))
        wrong += next(found for found in verdicts if found is not None) is Verdict.REGRESSION
    assert wrong <= most * 200


def test_what_the_order_of_the_boots_does_is_no_scatter() -> None:
    """Pairs are measured A B, then B A: what the second one loses cancels, and is no doubt of the mean."""
    ordered = [ratio * (1.03 if number % 2 else 0.97) for number, ratio in enumerate(around(1.0, 8, 0.002))]
    found = RULE.standing([samples(ordered)])
    assert found.verdict is Verdict.PASS
    (change,) = found.changes
    assert change.evidence is not None
    assert change.evidence.deviation < 0.005
    assert change.evidence.apart == 0
    slower = RULE.standing([samples([0.96 * ratio for ratio in ordered])])
    assert slower.verdict is Verdict.REGRESSION


# --- How many pairs it may still want ---


def test_before_two_pairs_only_the_rule_bounds_the_outlook() -> None:
    for pairs in range(2):
        assert RULE.outlook(both(around(1.0, pairs), around(1.0, pairs, seed=2))) == (4, 48)


@pytest.mark.parametrize(
    ("ratio", "deviation", "pairs", "expected"),
    [(0.9, 0.001, 3, (4, 4)), (1.0, 0.003, 3, (4, 6)), (0.98, 0.02, 9, (10, 48)), (1.0, 0.01, 48, (48, 48))],
)
def test_evidence_that_grows_fast_promises_few_pairs(
    ratio: float, deviation: float, pairs: int, expected: tuple[int, int]
) -> None:
    assert RULE.outlook([samples(around(ratio, pairs, deviation))]) == expected


def test_most_comparisons_end_where_the_outlook_after_two_pairs_said() -> None:
    source, held, ended = random.Random(3), 0, 0
    for _ in range(120):
        ratio, deviation = source.choice([1.0, 1.0, 0.99, 0.95]), source.choice([0.003, 0.01, 0.02])
        ratios = [ratio * (1 + source.gauss(0, deviation)) for _ in range(RULE.most)]
        least, most = RULE.outlook([samples(ratios[:2])])
        pairs = next(number for number in range(2, 49) if RULE.standing([samples(ratios[:number])]).verdict is not None)
        held += least <= pairs <= most
        ended += 1
    assert held / ended > 0.8


def ended_with(change: float, deviation: float, source: random.Random) -> tuple[float, float, bool]:
    """The change of a comparison as the pairs have it and as it is told, and whether the told interval holds it."""
    pdr: list[float] = []
    while True:
        pdr += [(1 + change) * math.exp(source.gauss(0, deviation)) for _ in range(2)]
        given_ = [samples(pdr)]
        standing = RULE.standing(given_)
        if standing.verdict is not None:
            (found,) = RULE.told(standing, given_)
            return standing.changes[0].change, found.change, found.lower <= change <= found.upper


@pytest.mark.parametrize(("change", "favours"), [(0.0, 1), (-0.03, -1)])
def test_where_a_comparison_ends_favours_nothing_that_is_told(change: float, favours: int) -> None:
    source = random.Random(1)
    found = [ended_with(change, 0.04, source) for _ in range(150)]
    seen, told = (favours * (sum(each) / len(found) - change) for each in list(zip(*found, strict=True))[:2])
    assert seen > 0.001
    assert abs(told) < 0.6 * seen
    assert sum(holds for _, _, holds in found) >= 0.92 * len(found)


def test_what_is_plain_is_told_as_it_is() -> None:
    given_ = both(around(1.0, 4), around(0.9, 4))
    standing = RULE.standing(given_)
    for seen, told in zip(standing.changes, RULE.told(standing, given_), strict=True):
        assert told.change == pytest.approx(seen.change, abs=1e-4)
        assert told.upper - told.lower == pytest.approx(seen.upper - seen.lower, rel=1e-3)
        assert dataclasses.replace(told, change=seen.change, lower=seen.lower, upper=seen.upper) == seen


def test_what_is_told_is_mirrored_where_less_is_better() -> None:
    higher = samples(around(0.985, 20, 0.03))
    lower = dataclasses.replace(
        higher, better="lower", baseline=higher.candidate, candidate=higher.baseline, tolerance=1 / 0.98 - 1
    )
    (one,), (other,) = (RULE.told(RULE.standing([each], ended=True), [each]) for each in (higher, lower))
    assert (1 + one.change) * (1 + other.change) == pytest.approx(1, abs=1e-6)
    assert (1 + one.lower) * (1 + other.upper) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("ratios", [[1.0] * 8, [1e-90, 1e90] * 4, [1e-200] * 7 + [1e-199], [1.0, 2.0]])
@pytest.mark.parametrize("tolerance", [0.0, 0.02, 0.999])
def test_odd_pairs_are_told_too(ratios: list[float], tolerance: float) -> None:
    given_ = [samples(ratios, tolerance=tolerance)]
    (found,) = RULE.told(RULE.standing(given_, ended=True), given_)
    assert found.lower <= found.change <= found.upper
    assert math.isfinite(found.lower) and math.isfinite(found.upper)


def test_without_pairs_nothing_is_told() -> None:
    given_ = [samples([1.0])]
    assert RULE.told(RULE.standing(given_, ended=True), given_) == ()


def test_at_the_end_half_the_odds_decide() -> None:
    source = random.Random(4)
    seen = set()
    for _ in range(200):
        ratios = [math.exp(source.gauss(0, 0.03)) for _ in range(8)]
        open_ = RULE.standing([samples(ratios)])
        if open_.verdict is None:
            (change,) = open_.changes
            assert change.evidence is not None
            verdict = RULE.standing([samples(ratios)], ended=True).verdict
            assert (verdict is Verdict.PASS) is (
                change.evidence.slower <= -math.log(50) and change.evidence.slower_if_drifting <= -math.log(7.5 / 2)
            )
            seen.add(verdict)
    assert seen >= {Verdict.PASS, Verdict.INCONCLUSIVE}
