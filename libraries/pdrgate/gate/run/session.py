"""A session: an open testbed and all that is taken for it. Several can be open at once; none knows of the others."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.gate.run.options import Options
from pdrgate.gate.run.profile import PROFILES
from pdrgate.gate.run.progress import RunObserver
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.knobs import ChangeLog
from pdrgate.results.model import TestbedResult
from pdrgate.safety.journal import Journal
from pdrgate.safety.locks import Lease
from pdrgate.safety.recovery import NotUndone, recover_stale, undo
from pdrgate.safety.state_folder import STATE_DIR
from pdrgate.testbeds import Testbed, TestbedConfig
from pdrgate.testbeds.config import Claim
from pdrgate.values.errors import PdrGateError, TestbedError

if TYPE_CHECKING:
    from pdrgate.history.database.experience import Experience


class Session:
    """A testbed file, opened; a context manager that puts everything back.

    A testbed whose SUT is a build that is yet to be named is only *taken*; each boot of a build is *begun* and *ready*
    in it.

    Args:
        experience: keeps what boots deviate by, and tries of builds; None: nothing is known and nothing is kept.
        opener: makes a testbed in place of the one that the file describes, and of its machines.
        state: where the locks and journals of runs lie.

    Raises:
        TestbedError: another run has something that the testbed needs, or the testbed cannot be set up.
    """

    def __init__(
        self,
        config: TestbedConfig,
        options: Options,
        record: RunRecord,
        observer: RunObserver,
        *,
        experience: Experience | None = None,
        opener: Callable[[TestbedConfig, Journal], Testbed] | None = None,
        state: Path = STATE_DIR,
    ) -> None:
        self.config = config
        self.options = options
        self.profile = PROFILES[options.profile]
        self.record = record
        self.observer = observer
        self.experience = experience
        self._opener = opener
        self._state = state
        self._own: Testbed | None = None
        self._lease: Lease | None = None
        self._claim = Claim()
        self._claims = contextlib.ExitStack()
        """What is held of other machines."""
        self._journal: Journal | None = None
        self._testbeds: list[Testbed] = []
        self._kept: list[Testbed] = []
        """Testbeds of `_testbeds` that stay until `leave` names them, or the session ends."""
        self._said: set[str] = set()

    def open(self) -> None:
        """Take what the testbed needs and set it up."""
        self.take()
        with self._closed_on_error():
            self._own = self.begin(self.make)
            self._tell(self._own)  # it is up: an opener waits for what it opens

    def take(self) -> None:
        """Take what the testbed needs of this machine, and undo what earlier runs left."""
        self._introduce("")
        self._lease = Lease.acquire(self.config.resources(), self._state, self.options.wait, self.observer.warned)
        with self._closed_on_error():
            for sentence in recover_stale(self._state, lease=self._lease):
                self.observer.warned(sentence)
            if self._opener is None:
                # For all of the session: between two boots of a comparison, too, the SUT is nobody else's.
                self._claim = self._claims.enter_context(self.config.claimed())
            self._journal = Journal.begin(self._state, self._lease)

    def make(self, journal: Journal) -> Testbed:
        """Another testbed as the file describes it, see `begin`."""
        if self._opener is not None:
            return self._opener(self.config, journal)
        return self.config.open(journal, self._claim)

    def boot(self, build: KernelBuild, journal: Journal, *, counted: bool = False) -> Testbed:
        """The testbed on a fresh boot of a build, see `begin` and `TestbedConfig.boot`."""
        folder = self.record.folder / "consoles"
        return self.config.boot(build, journal, folder, self.observer.said, self._claim, counted=counted)

    @property
    def testbed(self) -> Testbed:
        """The testbed that the file describes. Raises TestbedError when it boots builds, and none was named."""
        if self._own is not None:
            return self._own
        if self._journal is None:
            raise TestbedError("no testbed is open; begin with the keyword Open Testbed")
        raise TestbedError(
            f"{self.config.name} boots the builds that are compared, and this test measures one that is up; choose one "
            "that compares builds: --kernel BUILD --against BUILD"
        )

    def standing(self) -> Testbed:
        """The testbed that is up, as the file describes it; another one where that was left. Raises as `open`."""
        if self._own is None:
            self._own = self.begin(self.make)
            self._tell(self._own)
        return self._own

    def begin(self, opener: Callable[[Journal], Testbed], *, kept: bool = False) -> Testbed:
        """Begin to set a testbed up beside those that are open; its SUT may still be coming up, see `ready`.

        Args:
            kept: whether it stays when all testbeds of a scenario are left.
        """
        if self._journal is None:
            raise TestbedError("nothing is taken yet; begin with the keyword Open Testbed")
        testbed: Testbed | None = None
        try:
            testbed = opener(self._journal)
            self._testbeds.append(testbed)
            if kept:
                self._kept.append(testbed)
        except BaseException as error:
            # An interruption may come when the testbed is made and not yet ours to close. Ctrl-C in a keyword is an
            # Exception, of Robot's own; only an error of ours says that the opener has cleaned up, as far as it could.
            if testbed is None and not isinstance(error, PdrGateError):
                interrupted, self._journal = self._journal, Journal.begin(self._state, self._lease)
                for failure in self._undone(interrupted):
                    self.observer.warned(str(failure))
            raise
        return testbed

    def ready(self, testbed: Testbed, introduce: bool = True) -> None:
        """Wait until a testbed's SUT is up, and say what it is."""
        testbed.ready()
        self._tell(testbed, introduce)

    def _tell(self, testbed: Testbed, introduce: bool = True) -> None:
        sentence = testbed.sentence()
        self._introduce(sentence)
        if introduce:
            self.observer.said(f"testbed {self.config.name}: {sentence}")

    def say_once(self, sentence: str) -> None:
        """Say what holds for all that is measured in this session, the first time only; nothing where it is empty."""
        if sentence and sentence not in self._said:
            self._said.add(sentence)
            self.observer.said(sentence)

    @property
    def changes(self) -> ChangeLog:
        """Log in which a change of the SUT is noted before it is made. Raises TestbedError when nothing is taken."""
        if self._journal is None:
            raise TestbedError("nothing is taken yet; begin with the keyword Open Testbed")
        return self._journal

    @contextlib.contextmanager
    def on_several_cpus(self) -> Iterator[int]:
        """Give what is begun meanwhile a SUT of several CPUs that records which lines they share, where the testbed has
        one.

        Yields the number of its CPUs, and 0 where there is none. It needs nothing more of this machine.
        """
        own, other = self.config, self.config.on_several_cpus() if self._opener is None else None
        self.config = other or own
        try:
            yield other.sut_cpus if other is not None else 0
        finally:
            self.config = own

    @contextlib.contextmanager
    def recorded_in(self, record: RunRecord) -> Iterator[None]:
        """What is measured meanwhile is another record's."""
        own, self.record = self.record, record
        try:
            yield
        finally:
            self.record = own

    @contextlib.contextmanager
    def booted(self, start: Callable[[Journal], Testbed]) -> Iterator[Testbed]:
        """A testbed that is up for a while, beside those of what the run is about. Raises TestbedError."""
        testbed = self.begin(start)
        try:
            self.ready(testbed, introduce=False)
            yield testbed
        finally:
            self.leave([testbed])

    def as_it_is(self) -> Session:
        """The session with the testbed and the record that it has now, also when it has others again: for what another
        thread measures on a SUT that is its own.
        """
        return copy.copy(self)

    def leave(self, testbeds: Collection[Testbed] | None = None) -> None:
        """Put testbeds of its own back; None: all of them but those that are kept.

        Raises:
            PdrGateError: the first failure to put one back. The others are reported to the observer.
        """
        self._raised(self._left(testbeds))

    def close(self) -> None:
        """Put everything back and let the next run begin; may be called twice.

        Raises:
            PdrGateError: the first that went wrong; the rest is reported to the observer. What could not be put back is
                in the journal, for the next start.
        """
        self._raised(self._closed())

    def _left(self, testbeds: Collection[Testbed] | None = None) -> list[PdrGateError]:
        failures: list[PdrGateError] = []
        for testbed in reversed(tuple(self._testbeds)):
            if testbed not in self._kept if testbeds is None else testbed in testbeds:
                try:
                    testbed.close()
                except PdrGateError as error:
                    failures.append(error)
                    continue
                if testbed in self._kept:
                    self._kept.remove(testbed)
                self._testbeds.remove(testbed)  # only now: what did not close is tried once more
        if testbeds is None:
            self._own = None
        return failures

    def _closed(self) -> list[PdrGateError]:
        # Where this is interrupted all is ours still, and the next call goes on.
        self._kept.clear()
        failures = self._left()
        self._testbeds.clear()  # what did not close is the journal's
        if self._journal is not None:
            failures += self._undone(self._journal)
            self._journal = None
        try:
            self._claims.close()
        except PdrGateError as error:
            failures.append(error)
        if self._lease is not None:
            self._lease.release()
            self._lease = None
        return failures

    def _undone(self, journal: Journal) -> list[PdrGateError]:
        """End a journal, and put back what its testbeds did not; what that does not manage either."""
        try:
            sentences = undo(journal)
        except PdrGateError as error:
            return [error]
        for sentence in sentences:
            if not isinstance(sentence, NotUndone):
                self.observer.said(sentence)
        return [TestbedError(sentence) for sentence in sentences if isinstance(sentence, NotUndone)]

    def _raised(self, failures: Sequence[PdrGateError]) -> None:
        for failure in failures[1:]:
            self.observer.warned(str(failure))
        if failures:
            raise failures[0]

    @contextlib.contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        """Close the session where something fails meanwhile, and raise that failure.

        What goes wrong in closing is reported to the observer.
        """
        try:
            yield
        except BaseException:
            for failure in self._closed():
                self.observer.warned(str(failure))
            raise

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _introduce(self, sentence: str) -> None:
        self.record.introduce(
            TestbedResult(
                name=self.config.name, kind=self.config.kind, source=str(self.config.source), sentence=sentence
            )
        )
