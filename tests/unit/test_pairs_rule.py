"""The rule that ends a comparison in pairs, and says what came of it: one for both."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdrgate.replication import PairsRule, Samples
from pdrgate.replication.samples import gravest_change
from pdrgate.results.verdict import Verdict

RULE = PairsRule()


def samples(ratios: list[float], name: str = "PDR", tolerance: float = 0.02) -> Samples:
    """Pairs of a baseline that drifts, which drops out."""
    base = [1e6 * (1 + 0.1 * number) for number in range(len(ratios))]
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
def test_six_pairs_tell_what_is_plain(pdr: float, saturation: float, verdict: Verdict, which: str | None) -> None:
    for pairs in range(6):
        assert RULE.standing(both(around(pdr, pairs), around(saturation, pairs, seed=2))).verdict is None
    found = RULE.standing(both(around(pdr, 6), around(saturation, 6, seed=2)))
    assert found.verdict is verdict
    assert found.decisive is not None
    assert which is None or found.decisive.measurand == which
    # 99 % for an early look, for both measurands together.
    assert {change.confidence for change in found.changes} == {0.995}


def test_below_two_pairs_there_is_no_change() -> None:
    for pairs in (0, 1):
        assert RULE.standing(both([1.0] * pairs, [1.0] * pairs)).changes == ()
        assert RULE.standing(both([1.0] * pairs, [1.0] * pairs)).decisive is None
        ended = RULE.standing(both([1.0] * pairs, [1.0] * pairs), ended=True)
        assert ended.verdict is Verdict.INCONCLUSIVE


def test_only_even_numbers_of_pairs_are_fair_to_both_builds() -> None:
    assert RULE.standing(both(around(0.9, 7), around(0.9, 7))).verdict is None
    assert RULE.standing(both(around(0.9, 7), around(0.9, 7)), ended=True).verdict is Verdict.REGRESSION


def test_a_doubtful_measurand_keeps_the_comparison_open_until_it_is_over() -> None:
    doubtful = both(around(1.0, 8), around(0.98, 8))
    assert RULE.standing(doubtful).verdict is None
    assert RULE.standing(doubtful, ended=True).verdict is Verdict.INCONCLUSIVE
    assert PairsRule(most=8).standing(doubtful).verdict is Verdict.INCONCLUSIVE


def test_a_regression_of_one_measurand_needs_no_certainty_about_the_other() -> None:
    found = RULE.standing(both(around(0.8, 6), around(0.98, 6, 0.05)))
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


def test_two_measurands_do_not_err_twice_as_often() -> None:
    """With neither changed by more than the tolerance, a REGRESSION on any account stays as rare as asked for."""
    source = random.Random(1)
    wrong = 0
    for _ in range(300):
        pdr, saturation = [], []
        for pairs in range(1, 25):
            pdr.append(0.98 * (1 + source.gauss(0, 0.02)))
            saturation.append(0.98 * (1 + source.gauss(0, 0.02)))
            standing = PairsRule(most=24).standing(both(pdr, saturation), ended=pairs == 24)
            if standing.verdict is not None:
                wrong += standing.verdict is Verdict.REGRESSION
                break
    assert wrong <= 0.07 * 300
