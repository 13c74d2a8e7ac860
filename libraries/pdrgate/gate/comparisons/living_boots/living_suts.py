"""SUTs of two builds that stay up from scenario to scenario, by pairs."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from pdrgate.errors import PdrGateError, TestbedError
from pdrgate.gate.comparisons.cold_boots.one_boot import BootError
from pdrgate.gate.comparisons.pairs.compared_builds import SIDES, Build
from pdrgate.gate.run.session import Session
from pdrgate.results.model import Side
from pdrgate.testbeds import Testbed


class LivingSuts:
    """Pairs of SUTs, one of each build, that are booted when they are asked for first and stay until the session ends.

    One that has died is booted anew the next time: it costs the scenario that it died of, and no other.
    """

    def __init__(self, session: Session, builds: Mapping[Side, Build]) -> None:
        self.builds = dict(builds)
        self.workers = ThreadPoolExecutor(len(SIDES))
        """Set up both SUTs of a pair at once. What a thread has started ends with it, so that they stay as well."""
        self._session = session
        self._up: dict[tuple[Side, int], Testbed] = {}

    def are_of(self, builds: Mapping[Side, Build]) -> bool:
        """Whether they are boots of these builds."""
        return {side: one.identity for side, one in builds.items()} == {
            side: one.identity for side, one in self.builds.items()
        }

    def pair(self, number: int) -> Mapping[Side, Testbed]:
        """Both SUTs of a pair; what is not up is booted, both at once. Raises BootError."""
        fresh = [side for side in SIDES if (side, number) not in self._up]
        for side in fresh:
            self._session.observer.said(f"living boot {number} of the {side}, {self.builds[side].label}")
            try:
                self._up[side, number] = self._session.begin(self.builds[side].start, kept=True)
            except TestbedError as error:
                raise BootError(side, error) from error
        for side in fresh:
            try:
                self._session.ready(self._up[side, number], introduce=number == 1)
            except TestbedError as error:
                self.lost(side, number)
                raise BootError(side, error) from error
        return {side: self._up[side, number] for side in SIDES}

    def lost(self, side: Side, number: int) -> None:
        """Give up a SUT that failed, whose next scenario shall have another."""
        testbed = self._up.pop((side, number), None)
        if testbed is not None:
            self._leave(testbed)

    def close(self) -> None:
        """End all of them; may be called twice."""
        self.workers.shutdown()
        while self._up:
            self._leave(self._up.popitem()[1])

    def _leave(self, testbed: Testbed) -> None:
        try:
            self._session.leave([testbed])
        except PdrGateError as error:
            self._session.observer.said(str(error))
