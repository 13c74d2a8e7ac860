"""What the keywords of one Robot run share: its record, the testbeds that suites have opened, and the running test."""

from __future__ import annotations

import dataclasses
import io
import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from assertionengine import AssertionOperator, verify_assertion

from pdrgate.builds.program_setup import ProgramSetup
from pdrgate.data_paths.catalogue import UNDER_STEPS
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.packet_vectors.vectors_comparison import VectorsComparison
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.scenario_keys import with_changes
from pdrgate.gate.run.session import Session
from pdrgate.gate.scenarios.scenario_run import ScenarioRun
from pdrgate.gate.scenarios.transfer_run import TransferRun
from pdrgate.gate.verdicts.baseline import BaselineSource
from pdrgate.history.address import Address
from pdrgate.keywords.failures import CheckError
from pdrgate.record.trial import Trial
from pdrgate.reports.console.screen import Screen
from pdrgate.values.errors import TestbedError, UsageError
from pdrgate.values.units import Duration, Rate, Ratio

_Run = TypeVar("_Run", ScenarioRun, TransferRun)
AnyMeasurement: TypeAlias = ScenarioRun | TransferRun | PairsComparison | VectorsComparison


@dataclass(frozen=True, slots=True)
class OpenTestbed:
    """A testbed that a suite has opened. It is that suite's, and of the suites below it, until the suite ends."""

    session: Session
    baselines: BaselineSource | None
    suite: str
    alias: str


@dataclass
class RunningTest:
    """What one test describes and measures; the next begins anew."""

    name: str = ""
    longname: str = ""
    """Name of the test with its suites' names. No other test of the run has it."""
    scenario: Scenario = field(default_factory=Scenario)
    path_chosen: bool = False
    """Whether the scenario's data path was, so that it is not the usual one by default."""
    setup: ProgramSetup = field(default_factory=ProgramSetup)
    """What its eBPF programs are set up with."""
    measurement: AnyMeasurement | None = None
    last_trial: Trial | None = None
    """The trial of the last `Measure Load`."""
    failed_checks: list[Any] = field(default_factory=list)
    """Robot's results of the suite's own assertions that failed: the one failure that is no fault and no verdict."""

    def check(
        self, value: Any, operator: AssertionOperator | None, expected: Any, what: str, message: str | None
    ) -> Any:
        """A getter's assertion; what a quantity is compared with is parsed as one. Raises CheckError when it fails."""
        if operator is not None and isinstance(value, Rate | Ratio | Duration):
            expected = type(value).parse(expected)
        try:
            return verify_assertion(value, operator, expected, what, message)
        except AssertionError as failure:
            raise CheckError(str(failure)) from failure


@dataclass
class State:
    """Shared by the components of the library."""

    record: RunRecord | None = None
    testbeds: list[OpenTestbed] = field(default_factory=list)
    """The testbeds in the order in which they were opened."""
    suite: str = ""
    """The running one, by its long name."""
    tests: int = 1
    """How many tests of the whole run were selected."""
    chosen: str = ""
    """Alias of the testbed that `Use Testbed` chose; else it is the one that was opened last."""
    test: RunningTest = field(default_factory=RunningTest)
    histories: list[Address] = field(default_factory=list)
    """What the run puts itself into when it ends."""
    paths: dict[str, Scenario] = field(default_factory=dict)
    """The scenarios that were counted on living SUTs, by name."""
    living: dict[Session, LivingSuts] = field(default_factory=dict)
    """SUTs of two builds that stay up from test to test, by the session that ends them."""
    by_gate: bool = False
    """Whether ``pdrgate gate`` started Robot.

    The gate prints the verdict when all has ended, and Robot writes nothing.
    """

    verbose: bool = False
    """Whether the console shows all that happens on each of several paths."""
    began: float | None = None
    """When the first test began, by a monotonic clock, in seconds; None before."""

    @property
    def brief(self) -> bool:
        """Whether the console has one line for each path."""
        return self.by_gate and self.to_measure > 1 and not self.verbose

    @cached_property
    def screen(self) -> Screen:
        """The screen that the run's lines go to; the first line makes it."""
        return Screen(sys.__stdout__ or io.StringIO(), live=self.by_gate)

    @property
    def current(self) -> OpenTestbed:
        """The testbed that the running suite uses. Raises TestbedError when none is open, or of that alias."""
        mine = [one for one in self.testbeds if f"{self.suite}.".startswith(f"{one.suite}.")]
        if self.chosen:
            mine = [one for one in mine if one.alias == self.chosen]
        if not mine:
            raise TestbedError("no testbed is open; begin the suite with: Suite Setup    Open Testbed    ${TESTBED}")
        return mine[-1]

    def use(self, alias: str) -> None:
        """Choose a testbed by its alias. Raises UsageError when there is none."""
        known = [one.alias for one in self.testbeds]
        if alias not in known:
            raise UsageError(f"no testbed is open as {alias!r}; there are {', '.join(known) or 'none'}")
        if self.test.measurement is not None:
            raise TestbedError("the scenario is being measured; choose the testbed before its first trial")
        self.chosen = alias

    def describe(self, **changes: Any) -> Scenario:
        """Change what the scenario is, before its first trial. Raises UsageError for values that do not exist."""
        if self.test.measurement is not None:
            raise TestbedError("the scenario is being measured and cannot change; describe it before the first trial")
        self.test.scenario = dataclasses.replace(self.test.scenario, **changes)
        self.test.path_chosen |= "data_path" in changes
        return self.test.scenario

    def beneath(self, named: str | None) -> str:
        """The data path that steps and a program of the scenario's own are put on: the one that is ``named``, else that
        was chosen.
        """
        return named or (self.test.scenario.data_path if self.test.path_chosen else UNDER_STEPS)

    @property
    def asked(self) -> Scenario:
        """The test's scenario, with what the run changes of each path that can have it."""
        return with_changes(self.test.scenario, self.current.session.options.changes)[0]

    @property
    def to_measure(self) -> int:
        """How many tests of the run measure: some are left out whose path runs the same code in both builds."""
        selection = None if self.record is None else self.record.selection
        if self.record is None or selection is None or self.record.audit_failed:
            return self.tests
        return max(1, self.tests - len(selection.because("same")))

    def begun(self) -> ScenarioRun:
        """The measurement of the scenario by trials; the first call sets the SUT up."""
        return self._begun(ScenarioRun)

    def transferring(self) -> TransferRun:
        """The measurement of the scenario by transfers; the first call sets the SUT up."""
        return self._begun(TransferRun)

    def _begun(self, kind: type[_Run]) -> _Run:
        test = self.test
        if isinstance(test.measurement, PairsComparison | VectorsComparison):
            raise TestbedError("two builds are being compared; measure one SUT in a test of its own")
        if test.measurement is None:
            testbed = self.current
            if self.asked.alike:
                raise UsageError(
                    "packets leave alike by two builds, and one is measured; compare builds, or leave it out"
                )
            # Kept before it is prepared: what fails half-way is put back at the end of the test.
            test.measurement = kind(
                testbed.session, self.asked, baselines=testbed.baselines, test=test.name, longname=test.longname
            )
            test.measurement.prepare()
        if not isinstance(test.measurement, kind):
            raise TestbedError("trials and transfers are no one measurement; make each in a test of its own")
        return test.measurement

    @property
    def measured(self) -> AnyMeasurement:
        """The test's measurement. Raises TestbedError when there is none yet."""
        if self.test.measurement is None:
            raise TestbedError("nothing is measured; begin with Search Partial Drop Rate, or with Measure Transfers")
        return self.test.measurement


class KeywordComponent:
    """Keywords of one concern; all components of the library share what is known of the run."""

    def __init__(self, state: State) -> None:
        self._state = state
