"""Pairs whose deviation is known: two of them may end a comparison, and over many paths hardly one is called wrongly.

These are simulations: normal values in place of boots, judged by the gate's own rule.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from pdrgate.gate.comparisons.living_boots.counted_measurands import compared_by_counts
from pdrgate.gate.comparisons.living_boots.living_suts import AT_ONCE
from pdrgate.gate.run.scenario import Scenario
from pdrgate.measurands import Cost
from pdrgate.replication import PairsRule, Samples
from pdrgate.results.verdict import Verdict
from pdrgate.stats.pooled import Deviation
from pdrgate.stats.sequential import log_likelihood_ratio

PATHS, RUNS = 26, 300
MOST = 6
KNOWN = compared_by_counts(Scenario()).pairs_deviate[Cost.about.name]


def _verdict(source: np.random.Generator, change: float, deviation: float) -> tuple[Verdict, int]:
    """A path of a made-up run, and the pairs that it took."""
    rule = PairsRule(most=MOST, comparisons=PATHS, affordable=MOST)
    base, slower = (5000 * np.exp(source.normal(0.0, deviation / math.sqrt(2), MOST)) for _ in range(2))
    slower *= 1 + change
    for pairs in range(AT_ONCE, MOST + 1, AT_ONCE):
        samples = Samples("cost", "instructions/packet", "lower", 0.01, (*base[:pairs],), (*slower[:pairs],), KNOWN)
        verdict = rule.standing([samples], ended=pairs == MOST).verdict
        if verdict is not None:
            return verdict, pairs
    raise AssertionError("a rule ends with its last pair")


def test_a_simulation_of_equal_builds_on_26_paths_is_green_in_97_of_100_runs() -> None:
    source = np.random.default_rng(7)
    found = [[_verdict(source, 0.0, KNOWN.value) for _ in range(PATHS)] for _ in range(RUNS)]
    green = sum(all(verdict.passes for verdict, _ in run) for run in found)
    assert green >= 0.97 * RUNS
    assert np.mean([pairs for run in found for _, pairs in run]) < 1.2 * AT_ONCE


@pytest.mark.parametrize("deviation", [0.5 * KNOWN.value, KNOWN.value])
def test_a_simulation_of_a_build_slower_by_three_percent_is_a_regression(deviation: float) -> None:
    source = np.random.default_rng(8)
    found = [_verdict(source, 0.03, deviation)[0] for _ in range(RUNS)]
    assert found.count(Verdict.REGRESSION) >= 0.99 * RUNS


def test_a_path_that_scatters_more_than_is_known_is_not_decided_by_two_pairs() -> None:
    """The pairs' own deviation counts beside the one that is known."""
    rule = PairsRule(most=MOST, comparisons=PATHS, affordable=MOST)
    samples = Samples("cost", "instructions/packet", "lower", 0.01, (5000.0, 5000.0), (5150.0, 4850.0), KNOWN)
    assert rule.standing([samples]).verdict is None


def test_evidence_with_nothing_known_is_as_without() -> None:
    values = (0.001, -0.002, 0.0005)
    assert log_likelihood_ratio(values, -0.02, 0.0, Deviation(0.1, 0.0)) == log_likelihood_ratio(values, -0.02, 0.0)


def test_a_deviation_pools_what_further_values_tell() -> None:
    assert Deviation(0.5, 4.0).with_values((1.0, 2.0, 3.0)) == Deviation(math.sqrt((4 * 0.25 + 2.0) / 6), 6.0)
