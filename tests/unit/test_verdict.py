"""Verdicts: exit codes, and which of several a run ends with."""

from __future__ import annotations

import itertools

import pytest

from pdrgate.results.verdict import Judgement, Verdict, gravest_verdict
from pdrgate.stability import StabilityVerdict as Stability


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        ("PASS", 0), ("IMPROVEMENT", 0), ("NO_BASELINE", 0), ("REGRESSION", 1), ("UNSTABLE", 1), ("INCONCLUSIVE", 3),
        ("CRASH", 1),
        ("ASSERTION_FAILED", 1), ("DISTURBED", 2), ("GENERATOR_LIMITED", 2), ("ERROR", 2),
    ],
)  # fmt: skip
def test_exit_codes(verdict: str, code: int) -> None:
    assert Verdict(verdict).exit_code == code
    assert Verdict(verdict).passes == (code == 0)


def test_there_are_eleven() -> None:
    assert len(Verdict) == 11


def test_every_stability_verdict_but_stable_is_one_of_the_gates() -> None:
    assert {Verdict(each.value) for each in Stability if each is not Stability.STABLE} == {
        Verdict.UNSTABLE, Verdict.INCONCLUSIVE, Verdict.GENERATOR_LIMITED
    }  # fmt: skip


def test_evidence_against_the_build_outranks_the_testbed_which_outranks_doubt() -> None:
    order = [
        Verdict.CRASH, Verdict.REGRESSION, Verdict.UNSTABLE, Verdict.ASSERTION_FAILED, Verdict.ERROR,
        Verdict.GENERATOR_LIMITED, Verdict.DISTURBED, Verdict.INCONCLUSIVE, Verdict.NO_BASELINE, Verdict.PASS,
        Verdict.IMPROVEMENT,
    ]  # fmt: skip
    assert set(order) == set(Verdict)
    for (place, one), (other_place, other) in itertools.product(enumerate(order), repeat=2):
        assert gravest_verdict([one, other]) is order[min(place, other_place)]


def test_a_run_passes_only_when_all_its_scenarios_do() -> None:
    for pair in itertools.product(Verdict, repeat=2):
        assert gravest_verdict(pair).passes == all(verdict.passes for verdict in pair)


def test_nothing_measured_is_an_error() -> None:
    assert gravest_verdict([]) is Verdict.ERROR


def test_a_judgement_begins_with_its_verdict() -> None:
    assert str(Judgement(Verdict.UNSTABLE, "TIR 0.46")) == "UNSTABLE: TIR 0.46"
