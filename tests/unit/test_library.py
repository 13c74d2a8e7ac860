"""The keyword library as Robot's listener."""

from __future__ import annotations

from robot.running import TestSuite

from pdrgate.keywords.library import PdrGate


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
