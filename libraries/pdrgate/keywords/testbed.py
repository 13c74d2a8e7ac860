"""Keywords that open and close a testbed."""

from __future__ import annotations

import atexit
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot.api.deco import keyword
from robot.api.types import Secret
from robot.libraries.BuiltIn import BuiltIn

from pdrgate.errors import PdrGateError
from pdrgate.gate.profile import profile as named_profile
from pdrgate.gate.run import Options, Run
from pdrgate.keywords.log import RobotObserver
from pdrgate.keywords.state import State
from pdrgate.stability import Reading
from pdrgate.testbeds import load_testbed
from pdrgate.units import Duration

if TYPE_CHECKING:
    from pdrgate.keywords.ssh import SharedConnections


class TestbedKeywords:
    """Open and close."""

    __test__ = False

    def __init__(self, state: State) -> None:
        self._state = state
        self._opened_by = ""
        self._earlier_scenarios: list[dict[str, Any]] = []
        self._failures: list[str] = []
        """Shared by the runs of all suites."""
        self._shared: SharedConnections | None = None

    @keyword
    def open_testbed(
        self,
        testbed: Path,
        profile: str = "quick",
        baseline: Path | None = None,
        reading: Reading = Reading.STRICT,
        wait: Duration = Duration(0),  # noqa: B008 - a frozen number
        password: Secret | None = None,
    ) -> None:
        """Sets up the testbed that the file ``testbed`` describes, and puts it back when the suite ends.

        Where the SUT is reached by SSH and the suite imports SSHLibrary, that library's keywords can use the same
        connection: `Switch Connection` to the alias of the SUT's host in the testbed file, which is ``sut`` by default.

        A testbed of virtual machines without a kernel of its own boots nothing yet, see `Compare Kernel Builds`.

        | =Argument= | =Meaning= |
        | ``profile``  | How much time a verdict may cost: quick, standard or pastrami. |
        | ``baseline`` | What to compare with: a result.json, the folder of a run, or a folder of runs. |
        | ``reading``  | How PASTRAMI's entry into saturation is read: strict, tolerant or published. |
        | ``wait``     | How long to wait for another run on this machine to end. |
        | ``password`` | For a SUT over SSH that takes no key. |
        """
        builtin = BuiltIn()
        folder = Path(str(builtin.get_variable_value("${OUTPUT DIR}")))
        given = baseline if baseline and str(baseline) not in ("", ".", "None", "${None}") else None
        run: Run | None = None
        try:
            config = load_testbed(testbed)
            if password is not None:
                config = config.with_password(password.value)
            run = Run(config, Options(named_profile(profile), folder, given, reading, float(wait)), RobotObserver())
            run.scenarios, run.failures = self._earlier_scenarios, self._failures
            if config.sut.vm is not None and config.sut.vm.kernel is None:
                run.take()  # builds are booted by the test
            else:
                run.open()
        except PdrGateError as error:
            if run is not None:
                run.fail(str(error))
            raise
        self._state.run = run
        # Robot may die without ending its suites, of a full disk for one.
        atexit.register(run.close)
        self._opened_by = str(builtin.get_variable_value("${SUITE NAME}"))
        self.share_connections()

    @keyword
    def close_testbed(self) -> None:
        """Puts everything back and lets the next run begin. Done at the end of the suite if not before."""
        if self._shared is not None:
            self._shared.end()
        run, self._state.run = self._state.run, None
        if run is None:
            return
        atexit.unregister(run.close)
        try:
            run.close()
        finally:
            self._earlier_scenarios = run.scenarios
            run.write(finished=True)

    def share_connections(self) -> None:
        """Let SSHLibrary, where the running suite has it, use the testbed's SSH connections."""
        if self._state.run is not None and self._state.run.config.sut.rack is not None:
            # Only here: SSH takes a while to load, and most testbeds do without.
            from pdrgate.keywords.ssh import SharedConnections

            self._shared = self._shared or SharedConnections()
            self._shared.share(getattr(self._state.run.testbed, "connections", {}))

    def suite_ended(self, name: str) -> None:
        """Close the testbed when this suite opened it."""
        if self._state.run is not None and name == self._opened_by:
            self.close_testbed()
