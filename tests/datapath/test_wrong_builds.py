"""The gate on programs that do to packets what no router does: no such build passes, however fast it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from fake_testbed import Watcher
from machine_noise import UNDECIDED
from wrong_routers import FAULTS, MARKS, RIGHT, SENDS_BACK, router

from pdrgate.gate.comparisons.by_scenario import comparison_of
from pdrgate.gate.comparisons.pairs.comparison_task import Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.run.options import Options
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.sut.prepared_sut import Identity, PreparedSut
from pdrgate.measurands.counted.load_cost import MapMemory, VerifiedInstructions
from pdrgate.reports.pages.blocks import whole_html
from pdrgate.reports.words.frame_words import frames_part
from pdrgate.results.verdict import Verdict
from pdrgate.testbeds import load_testbed
from pdrgate.values.errors import SutError
from pdrgate.values.units import Duration, Ratio

pytestmark = pytest.mark.datapath

NAMESPACES = Path(__file__).parents[2] / "resources/testbeds/local-netns.yaml"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    record = RunRecord(tmp_path / "run", "smoke")
    session = Session(load_testbed(NAMESPACES), Options(profile="smoke", wait=Duration(600.0)), record, Watcher())
    session.take()
    yield session
    session.close()


def compare(session: Session, baseline: Path, candidate: Path, family: Literal[4, 6]) -> PairsComparison:
    builds = {
        "baseline": Build("baseline", "before", session.make, baseline),
        "candidate": Build("candidate", "after", session.make, candidate),
    }
    scenario = Scenario(f"xdp-ipv{family}-routing")
    comparison = comparison_of(ComparisonTask(session, scenario, builds, Plan(2, None, 0.02)))  # type: ignore[arg-type]
    comparison.run()
    return comparison


CASES = {
    "sends back": (RIGHT, SENDS_BACK, Verdict.REGRESSION, r"the candidate sends \d+ of \d+ packets back on the port"),
    "keeps the hop limit": (
        RIGHT, FAULTS["hop limit"].code, Verdict.REGRESSION,
        r"the candidate makes other frames than the baseline: (hop limit|time to live) 64, the baseline's 61$",
    ),
    "zeroes": (RIGHT, FAULTS["source words"].code, Verdict.REGRESSION, "candidate makes wrong frames, .*source ad"),
    "corrupts both": (
        FAULTS["checksum"].code, FAULTS["checksum"].code, Verdict.ERROR, "both builds are wrong: .*makes wrong frames"
    ),
    "is mended": (FAULTS["checksum"].code, RIGHT, Verdict.ERROR, "baseline makes wrong frames, .*nothing to compare"),
}  # fmt: skip


@pytest.mark.parametrize("family", [6, 4])
@pytest.mark.parametrize("case", CASES)
def test_the_verdict_on_two_builds(session: Session, tmp_path: Path, case: str, family: Literal[4, 6]) -> None:
    before, after, verdict, reason = CASES[case]
    comparison = compare(session, router(tmp_path, before, "before"), router(tmp_path, after, "after"), family)
    assert comparison.judgement is not None
    assert comparison.judgement.verdict is verdict
    assert re.search(reason, comparison.judgement.reason)
    assert session.record.result().scenarios[0].verdict is verdict
    # Nothing was measured: what speed has what sends wrong frames?
    assert comparison.boots == []
    stored = session.record.result().scenarios[0].details.frames
    if case != "sends back":
        page = "\n".join(whole_html([frames_part(session.record.result().scenarios[0])]))
        assert "<mark>" in page
        assert all(one.sent and one.must_be and one.got and one.differences for one in stored)
        told = "\n".join(session.observer.sentences)  # type: ignore[attr-defined]
        assert "^^" in told


def test_a_candidate_that_the_kernel_refuses_is_a_regression_and_a_baseline_an_error(
    session: Session, tmp_path: Path
) -> None:
    right = router(tmp_path, RIGHT, "right")
    refused = router(tmp_path, "return *(unsigned char *)(end + 1);", "refused")
    found = compare(session, right, refused, 6).judgement
    assert found is not None
    assert found.verdict is Verdict.REGRESSION
    assert re.search(
        r"^the candidate's program does not load, and the baseline's does: .*refused.bpf.o: .* refuses its program \w+ "
        r"\(xdp\): the verifier says: ",
        found.reason,
    )
    (boot,) = session.record.result().scenarios[0].builds.boots
    assert (boot.side, boot.refused, boot.sut_failed) == ("candidate", True, True)
    other = compare(session, refused, right, 4).judgement
    assert other is not None
    assert other.verdict is Verdict.ERROR
    assert "the verifier says: " in other.reason


def test_what_the_verifier_takes_longer_for_is_judged_beside_the_speed(session: Session, tmp_path: Path) -> None:
    grows = 'volatile int grown = 0; _Pragma("clang loop unroll(full)") for (int i = 0; i < 400; i++) grown += i;'
    session.options = replace(session.options, load_tolerance=Ratio(0.1))
    found = compare(session, router(tmp_path, RIGHT, "right"), router(tmp_path, grows, "grown"), 6)
    assert found.judgement is not None
    if found.comparison is None:
        # On a loaded machine the generator is the limit.
        assert found.judgement.verdict.value in UNDECIDED, found.judgement
        return
    changes = {one.measurand: one for one in found.comparison.changes}
    verified, memory = (changes[kind.about.name] for kind in (VerifiedInstructions, MapMemory))
    assert verified.candidate > 2 * verified.baseline
    assert (verified.verdict, memory.verdict) == (Verdict.REGRESSION, Verdict.PASS)
    assert "the verifier looks at " in found.judgement.reason
    # What else a loaded machine makes of two pairs is not what this is about.
    assert found.judgement.verdict is Verdict.REGRESSION or not found.comparison.accepted


def test_builds_that_do_the_same_otherwise_are_compared_by_speed(session: Session, tmp_path: Path) -> None:
    same = router(tmp_path, MARKS, "marks")
    comparison = compare(session, same, same, 6)
    assert comparison.loop.replication.unlike is None
    assert comparison.judgement is not None
    # On a loaded machine the generator is the limit, before a boot has ended.
    assert len(comparison.boots) == 4 or comparison.judgement.verdict.value in UNDECIDED, comparison.judgement


def test_a_build_alone_is_refused_before_anything_is_measured(session: Session, tmp_path: Path) -> None:
    program = router(tmp_path, FAULTS["payload"].code, "wrong")
    scenario = Scenario("xdp-ipv6-routing", frame_size=128)
    subject = PreparedSut(session, scenario, session.begin(session.make), Identity(program=program))
    try:
        with pytest.raises(SutError, match=r"^xdp-ipv6-routing makes wrong frames, \d of \d looked at: payload 0x55"):
            subject.prepare()
    finally:
        subject.release()
    assert subject.trials == []
