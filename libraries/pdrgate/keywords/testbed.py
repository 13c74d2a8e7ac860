"""Keywords that open and close testbeds, and the testbed's SSH connections in the suite's SSHLibrary.

Keywords of SSHLibrary reach the SUT by the host's alias. SSHLibrary makes connections that take any host key. So the
testbed makes its own, which is verified, and SSHLibrary is given that one.
"""

from __future__ import annotations

import atexit
import contextlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot.api.deco import keyword
from robot.api.types import Secret
from robot.libraries.BuiltIn import BuiltIn

from pdrgate.gate.run.declaration import By, declarations
from pdrgate.gate.run.options import Options, kept_options
from pdrgate.gate.run.project_file import read_project
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.run_settings import keys, read_settings, settings_of_testbed
from pdrgate.gate.run.session import Session
from pdrgate.gate.verdicts.baseline import baselines
from pdrgate.hosts.ssh import SshConnection
from pdrgate.keywords.failures import STOPPED
from pdrgate.keywords.log import RobotObserver
from pdrgate.keywords.state import KeywordComponent, OpenTestbed, State
from pdrgate.results.verdict import INTERRUPTED
from pdrgate.testbeds import load_testbed
from pdrgate.values.errors import HeldError, PdrGateError

if TYPE_CHECKING:
    from pdrgate.history.address import Address
    from pdrgate.history.database.experience import Experience


class TestbedKeywords(KeywordComponent):
    """Open, choose and close."""

    __test__ = False

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._shared: SharedConnections | None = None

    @keyword
    def open_testbed(
        self,
        testbed: Path,
        *,
        alias: str = "testbed",
        password: Secret | None = None,
        resume: bool = False,
        **options: object,
    ) -> None:
        """Sets up the testbed that the file ``testbed`` describes, and puts it back when the suite ends.

        A suite may open several, each under an ``alias`` of its own. Keywords use the one that was opened last, until
        `Use Testbed` chooses another.

        Where the SUT is reached by SSH and the suite imports SSHLibrary, that library's keywords can use the same
        connection: `Switch Connection` to the alias of the SUT's host in the testbed file, ``sut`` by default.
        ``password`` is for a SUT over SSH that takes no key.

        A testbed of virtual machines without a kernel of its own boots nothing yet, see `Compare Kernel Builds`.

        ``resume`` says that the trials in the output directory are this run's, and need not be made again.

        | Open Testbed    testbed.yaml    profile=standard    tolerance=1%
        """
        self._open(testbed, alias, password, resume, options)

    @keyword
    def open_chosen_testbed(self) -> None:
        """Opens ``${TESTBED}`` with the options of the run, see `Open Testbed`.

        Each option is a variable of the same name, ``${PROFILE}`` for one: those of the command line, else those of
        ``robot --variable``, else those that the suite declares.
        """
        variable = BuiltIn().get_variable_value
        options = {name: variable(f"${{{one.variable}}}") for name, one in declarations(Options).items()}
        resume = str(variable("${RESUME}", False)).lower() == "true"
        self._open(Path(str(variable("${TESTBED}"))), "testbed", None, resume, options)

    def _open(
        self, testbed: Path, alias: str, password: Secret | None, resume: bool, given: Mapping[str, object]
    ) -> None:
        builtin = BuiltIn()
        folder = Path(str(builtin.get_variable_value("${OUTPUT DIR}")))
        if self._state.record is None:
            kept = kept_options(folder)
            project = None if kept is None or kept.project is None else read_project(kept.project)
            self._state.by_gate = kept is not None
            self._state.verbose = str(builtin.get_variable_value("${VERBOSE}", False)).lower() == "true"
            profile = declarations(Options)["profile"].value(given.get("profile"))
            self._state.record = RunRecord(
                folder,
                profile,
                resume=resume,
                command="" if kept is None else kept.command,
                commit="" if kept is None else kept.commit,
                acknowledgements=() if project is None else project.acknowledgements,
            )
            if self._state.record.put_aside is not None:
                observer = RobotObserver(self._state.screen)
                observer.warned(f"what an earlier run left is kept as {self._state.record.put_aside.name}")
        record = self._state.record
        session: Session | None = None
        try:
            asked = ((name, value) for name, value in given.items() if value is not None)
            said = read_settings(asked, keys(~By.PIPELINE, Options), "option")
            config = load_testbed(testbed)
            options = Options(**settings_of_testbed(config, Options) | said)
            if not self._state.testbeds:
                record.profile = options.profile
            if password is not None:
                config = config.with_password(password.value)
            found = baselines(options, folder)
            experience = self._experience(options.history)
            session = Session(
                config, options, record, RobotObserver(self._state.screen, lambda: self._state.brief),
                experience=experience,
            )  # fmt: skip
            if config.waits_for_build:
                session.take()  # builds are booted by the test
            else:
                session.open()
        except PdrGateError as error:
            record.fail(str(error), held=isinstance(error, HeldError))
            raise
        except Exception as error:
            if str(error) == STOPPED:  # Robot ended the set-up; its tests get no reason
                record.fail(INTERRUPTED)
            raise
        suite = str(builtin.get_variable_value("${SUITE NAME}"))
        self._state.testbeds.append(OpenTestbed(session, found, suite, alias))
        # Robot may die without ending its suites, of a full disk for one.
        atexit.register(session.close)
        self.share_connections()

    def _experience(self, where: Address | None) -> Experience | None:
        """The experience in a history, which the run is put into when it has ended; None where none was named."""
        if where is None:
            return None
        from pdrgate.history.database.experience import Experience  # SQLAlchemy: suites without a history do without

        if where not in self._state.histories:
            self._state.histories.append(where)
        return Experience(where)

    @keyword
    def use_testbed(self, alias: str) -> None:
        """Chooses the open testbed ``alias`` for all keywords of the running suite that follow."""
        self._state.use(alias)

    @keyword
    def close_testbed(self, alias: str = "") -> None:
        """Puts everything back on the testbed ``alias``, else on all of the running suite, and lets others run.

        The end of a suite does so by itself.
        """
        mine = [one for one in self._state.testbeds if one.suite == self._state.suite]
        self._close([one for one in mine if not alias or one.alias == alias])

    def share_connections(self) -> None:
        """Let SSHLibrary, where the running suite has it, use the testbeds' SSH connections."""
        for one in self._state.testbeds:
            if one.session.config.over_ssh and not one.session.config.waits_for_build:
                # Only here: SSH takes a while to load, and most testbeds do without.
                from pdrgate.keywords.testbed import SharedConnections

                self._shared = self._shared or SharedConnections()
                self._shared.share(getattr(one.session.testbed, "connections", {}))

    def suite_ended(self, name: str) -> None:
        """Close the testbeds that this suite opened."""
        self._state.chosen = ""
        self._close([one for one in self._state.testbeds if one.suite == name])

    def _close(self, testbeds: list[OpenTestbed]) -> None:
        observer, failures = RobotObserver(self._state.screen), list[PdrGateError]()
        for one in reversed(testbeds):
            if self._shared is not None:
                self._shared.end()
            if (living := self._state.living.pop(one.session, None)) is not None:
                living.settle()  # what is being put back there need not fail because its guest goes
            try:
                one.session.close()
            except PdrGateError as error:
                # Where the gate has the console Robot shows there nothing of what a suite's end raises.
                observer.warned(str(error))
                failures.append(error)
            # Only now: what was interrupted is closed when the process ends.
            self._state.testbeds.remove(one)
            atexit.unregister(one.session.close)
        if testbeds and self._state.record is not None:
            self._state.record.write(finished=True)
        if failures:
            raise failures[0]


_MODULE = "SSHLibrary"


class SharedConnections:
    """What was given to SSHLibrary, so that it can be taken back."""

    def __init__(self) -> None:
        self._given: list[tuple[Any, str]] = []

    def share(self, connections: Mapping[str, SshConnection]) -> None:
        """Open a connection of each alias in every SSHLibrary of the running suite that has not got it yet."""
        for library in _libraries():
            for alias, connection in connections.items():
                if (library, alias) not in self._given:
                    self._given.append((library, alias))
                    with _current_kept(library):
                        target = connection.target
                        library.open_connection(target.address, alias=alias, port=target.port, timeout=target.timeout)
                        library.current.client = _Client(connection)

    def end(self) -> None:
        """Close them in SSHLibrary; the testbed's own connection goes on."""
        given, self._given = self._given, []
        for library, alias in given:
            # The suite may have closed it, with all others.
            with contextlib.suppress(RuntimeError), _current_kept(library):
                library.switch_connection(alias)
                library.close_connection()


class _Client:
    """What SSHLibrary uses of a connected client, always of the present connection."""

    def __init__(self, connection: SshConnection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection.client(), name)

    def close(self) -> None:
        """The connection is the testbed's, and stays."""


def _libraries() -> list[Any]:
    if _MODULE not in sys.modules:
        return []
    kind = sys.modules[_MODULE].SSHLibrary
    instances: Any = BuiltIn().get_library_instance(all=True)
    return [one for one in instances.values() if isinstance(one, kind)]


@contextlib.contextmanager
def _current_kept(library: Any) -> Iterator[None]:
    """What was the current connection before is it afterwards."""
    try:
        before = library.current.config.index
    except (AttributeError, RuntimeError):
        before = None
    yield
    if before is not None:
        with contextlib.suppress(RuntimeError):
            library.switch_connection(before)
