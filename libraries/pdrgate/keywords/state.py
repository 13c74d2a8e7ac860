"""What the keywords of one Robot run share."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from pdrgate.errors import TestbedError
from pdrgate.gate.build_comparison import BuildComparison
from pdrgate.gate.run import Run
from pdrgate.gate.scenario import Scenario
from pdrgate.gate.scenario_run import ScenarioRun


@dataclass
class State:
    """The open run, the scenario that the test's Given steps describe, and its measurement once it has begun."""

    run: Run | None = None
    scenario: Scenario = dataclasses.field(default_factory=Scenario)
    measurement: ScenarioRun | BuildComparison | None = None

    def require_run(self) -> Run:
        """The open run. Raises TestbedError when no testbed is open."""
        if self.run is None:
            raise TestbedError("no testbed is open; begin the suite with: Suite Setup    Open Testbed    ${TESTBED}")
        return self.run

    def describe(self, **changes: Any) -> Scenario:
        """Change what the scenario is, before its first trial. Raises UsageError for values that do not exist."""
        if self.measurement is not None:
            raise TestbedError("the scenario is being measured and cannot change; describe it before the first trial")
        self.scenario = dataclasses.replace(self.scenario, **changes)
        return self.scenario

    def begun(self) -> ScenarioRun:
        """The measurement of the scenario; the first call sets the SUT up."""
        if isinstance(self.measurement, BuildComparison):
            raise TestbedError("two builds are being compared; measure single loads in a test of their own")
        if self.measurement is None:
            # Kept before it is prepared: what fails half-way is put back at the end of the test.
            self.measurement = ScenarioRun(self.require_run(), self.scenario)
            self.measurement.prepare()
        return self.measurement
