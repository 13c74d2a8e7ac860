"""The keyword library as Robot's listener."""

from __future__ import annotations

import io
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from robot.running import ResourceFile, TestSuite

from pdrgate.gate.run.profile import PROFILES
from pdrgate.keywords.library import PdrGate, _judged
from pdrgate.keywords.state import OpenTestbed
from pdrgate.reports.console.screen import Screen
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.values.errors import TestbedError

PASSED = Judgement(Verdict.PASS, "not slower")
SLOWER = Judgement(Verdict.REGRESSION, "slower: PDR")


def test_a_run_has_as_many_chances_to_err_as_tests_were_selected() -> None:
    top = TestSuite("Run")
    for name, tests in (("Routing", ["a", "b"]), ("XDP", ["c"])):
        suite = top.suites.create(name)
        for test in tests:
            suite.tests.create(test, tags=[test])
    library = PdrGate()
    library.start_suite(top.suites[1], None)
    assert library._state.tests == 3
    top.filter(included_tags=["b"])
    library.start_suite(top.suites[0], None)
    assert library._state.tests == 1


def test_all_that_did_not_close_is_said_when_a_suite_ends() -> None:
    """With the gate's own console Robot tells nobody what the end of a suite raises."""

    def testbed(complaint: str) -> OpenTestbed:
        def close() -> None:
            raise TestbedError(complaint)

        session: Any = SimpleNamespace(close=close)
        return OpenTestbed(session, None, "Suite", complaint)

    library, console = PdrGate(), io.StringIO()
    library._state.screen = Screen(console)
    library._state.testbeds += [testbed("a is busy"), testbed("b is busy")]
    with pytest.raises(TestbedError, match=r"^b is busy$"):
        library.end_suite(SimpleNamespace(longname="Suite"), None)
    assert console.getvalue() == "  b is busy\n  a is busy\n"
    assert library._state.testbeds == []


def test_no_argument_of_a_step_takes_the_place_of_one_in_its_name() -> None:
    resource = ResourceFile.from_file_system(Path(__file__).parents[2] / "resources/gate.resource")
    embedded = {step.name: (set(step.embedded.args), step.args) for step in resource.keywords if step.embedded}
    assert len(embedded) > 5
    for name, (within, arguments) in embedded.items():
        assert not within & {*arguments.positional, *arguments.named_only, arguments.var_positional}, name


def test_all_profiles_are_named_where_one_is_chosen() -> None:
    document = PdrGate().get_keyword_documentation("open_testbed")
    (row,) = (line for line in document.splitlines() if line.strip().startswith("| ``profile``"))
    assert set(PROFILES) <= set(re.findall(r"\w+", row))


@pytest.mark.parametrize(
    ("known", "message", "check", "verdict", "reason"),
    [
        (SLOWER, "REGRESSION: slower: PDR", "", Verdict.REGRESSION, "slower: PDR"),
        (SLOWER, "Several failures occurred:\n\n1) REGRESSION: slower: PDR", "", Verdict.REGRESSION, "slower: PDR"),
        # What failed by a verdict is no fault of the testbed's, whoever went on after it.
        (PASSED, "REGRESSION: slower: PDR", "", Verdict.REGRESSION, "slower: PDR"),
        (None, "UNSTABLE: TIR 0.46", "", Verdict.UNSTABLE, "TIR 0.46"),
        (None, "GENERATOR_LIMITED: it ended", "", Verdict.GENERATOR_LIMITED, "it ended"),
        (PASSED, "ERROR: no answer", "", Verdict.ERROR, "no answer"),
        (PASSED, "No keyword with name 'Get PRD' found.", "", Verdict.ERROR, "No keyword with name 'Get PRD' found."),
        (PASSED, "PASS: as it was", "", Verdict.ERROR, "PASS: as it was"),
        (PASSED, "2 != 3", "2 != 3", Verdict.ASSERTION_FAILED, f"2 != 3; the gate itself says {PASSED.verdict}"),
        (None, "2 != 3", "2 != 3", Verdict.ASSERTION_FAILED, "2 != 3"),
    ],
)
def test_the_verdict_of_a_test_that_failed(
    known: Judgement | None, message: str, check: str, verdict: Verdict, reason: str
) -> None:
    assert _judged(known, False, message, check) == Judgement(verdict, reason)


def test_a_test_that_passed_has_the_verdict_that_was_found() -> None:
    assert _judged(PASSED, True, "", "") is PASSED
    assert _judged(None, True, "", "").verdict is Verdict.NO_BASELINE
