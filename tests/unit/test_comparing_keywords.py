"""The keywords that compare two builds, on simulated SUTs: which tolerance they are judged by, and when they fail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fake_testbed import CONFIG, QUICK, FakeTestbed, Watcher
from simulated_sut import Behaviour, Ceiling, IdealCurve, SimulatedSut

from pdrgate.gate.comparisons.pairs.comparison_task import Build
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.session import Session
from pdrgate.history.results import read_result
from pdrgate.keywords.comparing import BuildKeywords
from pdrgate.keywords.judging import JudgingKeywords
from pdrgate.keywords.state import OpenTestbed, RunningTest, State
from pdrgate.results.model import Side
from pdrgate.results.verdict import Verdict
from pdrgate.safety.journal import Journal
from pdrgate.values.errors import TestbedError
from pdrgate.values.units import Ratio


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    """A suite that has opened a testbed for a run with a tolerance of 3 %, and whose test has begun."""
    record = RunRecord(tmp_path / "run", "quick")
    session = Session(
        CONFIG, replace(QUICK, tolerance=Ratio(0.03)), record, Watcher(), state=tmp_path / "state"
    )  # fmt: skip
    session.take()
    made = State(record=record, testbeds=[OpenTestbed(session, None, "suite", "testbed")], suite="suite")
    made.test = RunningTest("test")
    yield made
    session.close()
    record.close()


def compare(state: State, candidate: float | None, tolerance: float | None) -> None:
    """As the keywords do it that find builds; a candidate without a speed does not boot."""

    def build(side: Side, speed: float | None) -> Build:
        def boot(journal: Journal) -> FakeTestbed:
            if speed is None:
                raise TestbedError("it does not boot")
            return FakeTestbed(SimulatedSut(IdealCurve(speed), Behaviour(0.003), ceiling=Ceiling(4e6)))

        return Build(side, f"linux-{side}", boot)

    speeds = {"old": 1e6, "new": candidate}
    asked = None if tolerance is None else Ratio(tolerance)
    BuildKeywords(state)._compare(speeds.__getitem__, build, ("old", "new"), 24, asked, None)


@pytest.mark.parametrize(
    ("compared", "asked", "stored", "verdict"),
    [
        (None, [None], 0.03, Verdict.REGRESSION),  # the run's
        (0.5, [None], 0.5, Verdict.PASS),  # that of the comparison
        (None, [0.5], 0.5, Verdict.PASS),  # the suite's own
        (0.5, [0.01, 0.5], 0.01, Verdict.REGRESSION),  # the gravest of its own
        (None, [], 0.03, Verdict.REGRESSION),  # nobody asked for another
    ],
)
def test_the_tolerance_that_builds_are_judged_by(
    state: State, tmp_path: Path, compared: float | None, asked: list[float | None], stored: float, verdict: Verdict
) -> None:
    compare(state, 0.9e6, compared)
    judging = JudgingKeywords(state)
    judging.measurement_should_be_stable()
    failed = False
    for tolerance in asked:
        try:
            judging.pdr_should_not_have_regressed(None if tolerance is None else Ratio(tolerance))
        except AssertionError as failure:
            failed = True
            assert str(failure).startswith("REGRESSION: slower: PDR ")
    assert failed is (verdict is Verdict.REGRESSION and bool(asked))
    assert state.test.measurement is not None
    assert state.test.measurement.finish().verdict is verdict
    (entry,) = read_result(tmp_path / "run").scenarios
    assert entry.comparison is not None
    assert (entry.verdict, entry.comparison.tolerance) == (verdict, stored)


def test_builds_that_came_to_no_comparison_fail_with_its_reason(state: State) -> None:
    with pytest.raises(AssertionError, match=r"^ERROR: 2 boots of the candidate linux-candidate failed, the last: it "):
        compare(state, None, None)
