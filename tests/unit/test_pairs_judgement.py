"""The judgement of a comparison is a function of samples and of what speaks against them: nothing is booted here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pdrgate.gate.comparisons.pairs.pairs_judgement import PairsContext, PairsSamples, judged_pairs
from pdrgate.gate.comparisons.pairs.pairs_shape import PairsShape
from pdrgate.gate.comparisons.pairs.tries import Earlier
from pdrgate.measurands.counted.load_cost import LOAD_TOLERANCE, VerifiedInstructions
from pdrgate.replication import Contradiction, PairsRule, Samples
from pdrgate.results.model import CheckResult, SideResult, SpikeInResult
from pdrgate.results.verdict import Judgement, Verdict

STEADY = (1e6, 1.002e6, 0.999e6, 1.001e6, 0.998e6, 1.0e6, 1.001e6, 0.999e6)


def samples(candidate: Sequence[float], earlier: Earlier | None = None) -> PairsSamples:
    baseline = STEADY[: len(candidate)]
    own = Samples("PDR", "packets/s", "higher", 0.02, baseline, tuple(candidate))
    return PairsSamples(rule=PairsRule(), fresh=[own], pairs=len(candidate), earlier=earlier or Earlier())


CONTEXT = PairsContext(
    sides={
        "baseline": SideResult(side="baseline", build="linux-a"),
        "candidate": SideResult(side="candidate", build="linux-b"),
    },
    shape=PairsShape(8, {}, (), ()),
)


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [(1.0, Verdict.PASS), (0.9, Verdict.REGRESSION), (1.1, Verdict.IMPROVEMENT)],
)
def test_samples_alone_tell_a_verdict_and_its_change(factor: float, verdict: Verdict) -> None:
    found, change = judged_pairs(samples([factor * value for value in reversed(STEADY)]), CONTEXT)
    assert found.verdict is verdict
    assert change is not None
    assert change.accepted
    assert (change.pairs, change.baseline) == (8, "linux-a")
    assert change.change == pytest.approx(factor - 1.0, abs=0.005)


def test_of_one_pair_nothing_is_told() -> None:
    found, change = judged_pairs(samples(STEADY[:1]), CONTEXT)
    assert (found.verdict, change) == (Verdict.INCONCLUSIVE, None)
    assert "1 pair of boots; a comparison needs two" in found.reason


def test_a_failure_is_the_verdict_and_the_change_is_told_and_not_accepted() -> None:
    crashed = replace(CONTEXT, failure=Judgement(Verdict.CRASH, "it fell over"))
    found, change = judged_pairs(samples([0.9 * value for value in STEADY]), crashed)
    assert found.verdict is Verdict.CRASH
    assert found.reason.startswith("it fell over")
    assert "not accepted therefore: " in found.reason
    assert change is not None
    assert not change.accepted


def test_a_ratio_that_wanders_is_unstable_however_far_it_is_from_the_tolerance() -> None:
    wanders = CheckResult("drift", False, 1.0, 0.5, "candidate's PDR relative to the baseline's wanders")
    unsteady = replace(CONTEXT, shape=PairsShape(8, {}, (), (wanders,)))
    found, _ = judged_pairs(samples(STEADY), unsteady)
    assert found.verdict is Verdict.UNSTABLE
    assert "over 8 pairs of boots: " in found.reason


def test_a_pass_that_could_not_have_failed_is_none() -> None:
    planted = SpikeInResult(
        wanted=0.04, planted="work", slowdown=0.04, verdict=Verdict.PASS, reason="nothing was found"
    )
    found, _ = judged_pairs(samples(STEADY), replace(CONTEXT, spike_in=planted))
    assert found.verdict is Verdict.INCONCLUSIVE


def test_tries_that_contradict_are_told_and_do_not_count() -> None:
    other = Earlier(contradictions=(Contradiction("PDR", -0.1, 0.0, slower=False),))
    found, change = judged_pairs(samples(STEADY, other), CONTEXT)
    assert "contradict these and do not count" in found.reason
    assert change is not None
    assert (change.earlier, change.tries) == (0, 1)


def loads(candidate: float) -> PairsContext:
    name = VerifiedInstructions.about.name
    return replace(
        CONTEXT,
        values={"baseline": {name: (800.0,) * 8}, "candidate": {name: (candidate,) * 8}},
        asked={LOAD_TOLERANCE: 0.1},
    )


def test_a_program_that_the_verifier_takes_longer_for_is_a_regression_of_equal_speed() -> None:
    found, change = judged_pairs(samples(STEADY), loads(1200.0))
    assert found.verdict is Verdict.REGRESSION
    assert found.reason.startswith(
        "the verifier looks at 1200 instructions, baseline 800 (+50.0 %), tolerance 10.0%; PDR "
    )
    assert change is not None
    assert [one.measurand for one in change.changes] == ["PDR", VerifiedInstructions.about.name]
    assert change.changes[0].confidence == pytest.approx(0.95), "the PDR's is that of one measurand"


def test_what_loads_alike_or_cheaper_changes_no_verdict() -> None:
    for verified in (800.0, 100.0):
        found, _ = judged_pairs(samples(STEADY), loads(verified))
        assert found.verdict is Verdict.PASS
        assert found.reason.startswith("not slower: PDR ")
        assert f"the verifier looks at {verified:.0f} instructions, baseline 800" in found.reason
    slower, _ = judged_pairs(samples([0.8 * value for value in STEADY]), loads(800.0))
    assert slower.verdict is Verdict.REGRESSION
    assert slower.reason.startswith("slower: PDR ")


def test_without_a_stable_curve_a_load_is_told_and_not_judged() -> None:
    crashed = replace(loads(1200.0), failure=Judgement(Verdict.CRASH, "it fell over"))
    found, _ = judged_pairs(samples(STEADY), crashed)
    assert found.verdict is Verdict.CRASH
    assert "the verifier looks at 1200 instructions" in found.reason
