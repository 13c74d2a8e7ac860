"""SUTs of two builds that stay up from scenario to scenario, by pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from pdrgate.gate.comparisons.cold_boots.one_boot import BootError
from pdrgate.gate.comparisons.living_boots.path_codes import PathCodes
from pdrgate.gate.comparisons.living_boots.several_cpu_suts import SeveralCpuSuts
from pdrgate.gate.comparisons.living_boots.standing_suts import StandingSuts
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, Build
from pdrgate.gate.run.session import Session
from pdrgate.record.trial import Trial
from pdrgate.results.model import Side
from pdrgate.testbeds import Testbed
from pdrgate.values.errors import TestbedError

AT_ONCE = 2
"""Pairs that are measured at the same time."""
_KEPT = 4
"""Pairs that stay up for the next scenario. Few scenarios need those beyond them, and each guest holds memory."""
_ENOUGH = 4
"""Boots of a build that fail while none of it has come up. It is booted no more: no build holds up a machine by dying
in each scenario anew, or by saying nothing until patience ends."""

_COMPARED, _IN_DOUBT = (1, 2), (1, 2, 3, 4)
"""Pairs whose memory is compared: two boots of a kernel show what differs from boot to boot by itself. Where something
differs, two more show whether a counter came to one number twice by chance."""

OfPair = tuple[Side, int]
"""A SUT, by its side and the number of its pair."""


class LivingSuts(StandingSuts[OfPair]):
    """Pairs of SUTs, one of each build, that are booted when they are asked for first and stay until the session ends.

    One that has died is booted anew the next time: it costs the scenario that it died of, and no other. A build of
    which none comes up is given up: its last failure answers for all further scenarios.
    """

    def __init__(self, session: Session, builds: Mapping[Side, Build]) -> None:
        super().__init__(session)
        self.builds = dict(builds)
        self.workers = ThreadPoolExecutor(AT_ONCE * len(SIDES))
        """Set up and measure all SUTs of some pairs at once. What a thread has started ends with it, so that they stay
        as well."""
        self.several_cpus = SeveralCpuSuts(session, self.builds)
        """One pair more, of several CPUs, for the scenarios that ask for it."""
        self.codes = PathCodes(session, {side: one.identity for side, one in builds.items()})
        """What both kernels run on each path."""
        self.resting: dict[str, Trial] = {}
        """What each kernel does by itself, by boot: it does so whatever it is set up for."""
        self.came_up: set[Side] = set()
        """Sides of which a SUT has come up, whatever became of it."""
        self._failed: dict[Side, list[TestbedError]] = {side: [] for side in SIDES}
        """Failures of each build's boots while none of it has come up."""
        self._variables: Mapping[str, tuple[str, ...]] | None = None
        """Variables that differ after boot, by scenario; None until that was looked at."""

    def are_of(self, builds: Mapping[Side, Build]) -> bool:
        """Whether they are boots of these builds."""
        return {side: one.identity for side, one in builds.items()} == {
            side: one.identity for side, one in self.builds.items()
        }

    def pairs(self, numbers: Sequence[int]) -> Mapping[OfPair, Testbed]:
        """Both SUTs of some pairs; what is not up is booted, all at once. Raises BootError."""
        self.settle()
        for side in SIDES:
            if self.given_up(side):
                raise BootError(side, self._failed[side][-1])
        for one in [one for one in self._up if one[1] > _KEPT and one[1] not in numbers]:
            self.lost(one)
        wanted: list[OfPair] = [(side, number) for number in numbers for side in SIDES]
        fresh = [one for one in wanted if one not in self._up]
        for one in fresh:
            side, number = one
            self._session.observer.said(
                f"boot {number} of the {side}, which stays up for all paths: {self.builds[side].label}"
            )
            try:
                self._boot(one, self.builds[side].counted or self.builds[side].start)
            except TestbedError as error:
                raise BootError(side, error) from error
        failed: list[BootError] = []
        for one, coming in [(one, self.workers.submit(self._up[one].ready)) for one in fresh]:
            try:
                coming.result()
                self._session.ready(self._up[one], introduce=one[1] == 1)
                self.came_up.add(one[0])
            except TestbedError as error:
                self.lost(one)
                self._failed[one[0]].append(error)
                failed.append(BootError(one[0], error))
        if failed:
            self._give_up({one.side for one in failed})
            raise failed[0]
        return {one: self._up[one] for one in wanted}

    def variables_that_differ(self, scenario: str) -> tuple[str, ...] | None:
        """The variables that packets of a scenario touch and that both kernels leave with other values after boot.

        Returns:
            None where that is not known.

        Raises:
            BootError: a SUT does not come up.
        """
        if self._variables is None:
            self._variables = self.codes.boot_differences(self.pairs(_COMPARED))
            if any(self._variables.values()):
                self._variables = self.codes.boot_differences(self.pairs(_IN_DOUBT))
        return self._variables.get(scenario)

    def given_up(self, side: Side) -> bool:
        """Whether a build is booted no more, for none of its boots has come up."""
        return side not in self.came_up and len(self._failed[side]) >= _ENOUGH

    def meanwhile(self, done: Iterable[Callable[[], object]]) -> None:
        """Have something done on SUTs while their values are judged; whoever wants a SUT next waits for it."""
        self._going_on += map(self.workers.submit, done)

    def close(self) -> None:
        """End all of them; may be called twice."""
        self.workers.shutdown()
        self.settle()
        self.several_cpus.close()
        self._end_all()

    def _give_up(self, sides: Iterable[Side]) -> None:
        for side in filter(self.given_up, sides):
            self.several_cpus.give_up()
            self._session.observer.warned(
                f"none of {len(self._failed[side])} boots of the {side} has come up: it is booted no more"
            )

    def _ready(self, one: OfPair) -> None:
        self._up[one].ready()
