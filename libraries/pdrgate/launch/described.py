"""The scenarios that the tests of suites describe, read by running their Given steps and nothing else.

Robot runs the suites without their setups. The library passes over keywords that open a testbed, keeps what a test has
described when its first keyword that measures comes, and ends the test there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from robot.api import SuiteVisitor, TestSuite

from pdrgate.gate.run.options import SCENARIO_FILES
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.scenario_file import scenario_of
from pdrgate.launch.suites import ALL, RUN_NAME, chooses, listed
from pdrgate.record.fate import INSIDE
from pdrgate.this_process.own_files import PACKAGE, found
from pdrgate.values.errors import UsageError

SUITES = (Path("robot/gate"),)
"""The gate's own."""


_STORED = re.compile(r"-(unpinned|\dcpus?)-\d")
"""What a name in results has, and hardly a tag."""


@dataclass(frozen=True, slots=True)
class DescribedTest:
    """A test and the scenario that it measures."""

    name: str
    longname: str
    tags: tuple[str, ...]
    scenario: Scenario


class _Descriptions:
    """A listener of Robot that has the library describe only."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self) -> None:
        self.scenarios: dict[str, Scenario] = {}

    def library_import(self, library: Any, importer: Any) -> None:
        """Called by Robot for each library that a suite imports."""
        describe: Callable[[dict[str, Scenario]], None] | None = getattr(library.instance, "only_describe", None)
        if describe is not None:
            describe(self.scenarios)


class _WithoutFixtures(SuiteVisitor):  # type: ignore[misc]  # Robot has no types of it
    """Takes setups and teardowns of suites away."""

    def start_suite(self, suite: TestSuite) -> None:
        """Called by Robot for each suite."""
        suite.setup = suite.teardown = None


def described_tests(suites: Sequence[Path] = SUITES, patterns: Sequence[str] = (ALL,)) -> list[DescribedTest]:
    """The tests that the patterns choose, with their scenarios, in order; those that describe none are left out.

    Raises:
        UsageError: a suite cannot be read, or a pattern chooses no test.
    """
    from robot.run import run  # type: ignore[import-untyped]  # only robot.api is typed

    tests, descriptions = listed(suites, patterns), _Descriptions()
    run(
        *(str(found(suite)) for suite in suites),
        name=RUN_NAME,
        include=[] if ALL in patterns else list(patterns),
        pythonpath=[str(PACKAGE.parent)],
        prerunmodifier=[_WithoutFixtures()],
        listener=[descriptions],
        output="NONE",
        log="NONE",
        report="NONE",
        console="none",
        stdout=None,
        runemptysuite=True,
    )
    known = descriptions.scenarios
    return [
        DescribedTest(test.test, test.longname, test.tags, known[test.longname])
        for test in tests
        if test.longname in known
    ]


def scenario_named(name: str, suites: Sequence[Path] = SUITES) -> Scenario:
    """The scenario that `--scenario` names: by a tag of its test, its test's name, a file, or the name in results.

    Raises:
        UsageError: the name is of no scenario, or of several.
    """
    if name.endswith(SCENARIO_FILES):
        return scenario_of(Path(name))
    by_tag = any(chooses(name, one.tags) for one in listed(suites))
    tests = described_tests(suites, (name,) if by_tag else (ALL,))
    every, called = [one.scenario for one in tests], [one.scenario for one in tests if one.name == name]
    if not by_tag:
        every = [asked for one in every for asked in _as_asked(one) if asked.name == name] or called
    scenarios = {one.name: one for one in every}
    if len(scenarios) == 1:
        return scenarios.popitem()[1]
    if scenarios:
        raise UsageError(
            f"--scenario {name} names {len(scenarios)} scenarios, {', '.join(sorted(scenarios)[:3])} …; name one of "
            "them, or its tag (pdrgate gate --list-scenarios)"
        )
    raise UsageError(
        f"--scenario {name}: no test has this tag or name, and none has a scenario of this name; take a tag of "
        "'pdrgate gate --list-scenarios', a name from a result, or a YAML file"
    )


def tag_named(name: str, suites: Sequence[Path]) -> str:
    """The tag of the test of that name, or whose scenario results call so; else the name, which is a tag pattern then.

    Raises:
        UsageError: a suite cannot be read, or nothing but its suite chooses that test.
    """
    if name == ALL:
        return name
    known = listed(suites)
    is_one = bool(_STORED.search(name)) or any(one.test == name for one in known)
    if not is_one or any(chooses(name, one.tags) for one in known):
        return name
    tests = described_tests(suites)
    uses = Counter(tag for one in tests for tag in one.tags)
    for one in (test for test in tests if name in (test.name, test.scenario.name)):
        tag = next((tag for tag in one.tags if uses[tag] == 1), None)
        if tag is None:
            raise UsageError(f"--scenario {name}: its test {one.name} has no tag of its own; give it one")
        return tag
    return name


def _as_asked(scenario: Scenario) -> Iterator[Scenario]:
    """A scenario, and what a run makes of it that takes latency besides."""
    yield scenario
    if not scenario.ends_at_sut and scenario.counts not in INSIDE:
        yield replace(scenario, latency=True)
