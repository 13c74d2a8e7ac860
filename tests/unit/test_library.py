"""The keyword library as Robot's listener."""

from __future__ import annotations

from pathlib import Path

from robot.running import ResourceFile, TestSuite

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


def test_no_argument_of_a_step_takes_the_place_of_one_in_its_name() -> None:
    resource = ResourceFile.from_file_system(Path(__file__).parents[2] / "resources/gate.resource")
    embedded = {step.name: (set(step.embedded.args), step.args) for step in resource.keywords if step.embedded}
    assert len(embedded) > 5
    for name, (within, arguments) in embedded.items():
        assert not within & {*arguments.positional, *arguments.named_only, arguments.var_positional}, name
