"""SUTs that stay up from scenario to scenario."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Generic, TypeVar

from pdrgate.data_paths.standing_base import StandingBase
from pdrgate.gate.run.session import Session
from pdrgate.gate.sut.known_state import KnownState
from pdrgate.gate.sut.prepared_sut import PreparedSut
from pdrgate.safety.journal import Journal
from pdrgate.testbeds import Testbed
from pdrgate.values.errors import PdrGateError

Of = TypeVar("Of")
"""The key of a SUT: its side, or its side and the number of its pair."""


class StandingSuts(Generic[Of]):
    """SUTs that are set up for one scenario after the other, and put back while other things are done."""

    def __init__(self, session: Session) -> None:
        self.known: dict[Of, KnownState] = {}
        """What each SUT is without a scenario."""
        self._session = session
        self._up: dict[Of, Testbed] = {}
        self._going_on: list[Future[object]] = []

    def settle(self) -> None:
        """Wait until all is done that is done meanwhile."""
        wait(self._going_on)
        self._going_on.clear()

    def release(self, of: Of, sut: PreparedSut) -> None:
        """Put a SUT back; one that cannot be put back is ended, and the next scenario has another."""
        try:
            sut.release()
        except PdrGateError as error:
            self._session.observer.warned(str(error))
            self.lost(of)

    def lost(self, of: Of) -> None:
        """End a SUT, whose next scenario shall have another."""
        testbed = self._up.pop(of, None)
        if testbed is not None:
            try:
                self._session.leave([testbed])
            except PdrGateError as error:
                self._session.observer.warned(str(error))

    def _boot(self, of: Of, start: Callable[[Journal], Testbed]) -> Testbed:
        """Begin to have a SUT come up. Raises TestbedError."""
        testbed = self._up[of] = self._session.begin(lambda journal: start(journal).standing(), kept=True)
        self.known[of] = KnownState(base=StandingBase() if testbed.disposable else None)
        return testbed

    def _end_all(self) -> None:
        for of in reversed([*self._up]):
            self.lost(of)
