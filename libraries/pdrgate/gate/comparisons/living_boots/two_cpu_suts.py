"""A SUT of two CPUs of each build that stays up while some scenarios are seen on it, beside those that are counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial

from pdrgate.data_paths.standing_base import StandingBase
from pdrgate.errors import PdrGateError
from pdrgate.gate.comparisons.cold_boots.two_cpus import OnTwoCpus, results_of, see_packets
from pdrgate.gate.comparisons.pairs.compared_builds import SIDES, Build
from pdrgate.gate.comparisons.pairs.comparison_task import ComparisonTask
from pdrgate.gate.run.session import Session
from pdrgate.gate.sut.known_state import KnownState
from pdrgate.gate.sut.open_loop_sut import OpenLoopSut
from pdrgate.gate.sut.prepared_sut import Identity
from pdrgate.measurands.memory_changes import memory_changes
from pdrgate.measurands.memory_doubt import memory_may_have_changed
from pdrgate.measurands.memory_trials import memory_of
from pdrgate.measurands.shared_lines import JUDGED_OF_TWO_CPUS
from pdrgate.results.model import Side
from pdrgate.results.verdict import Verdict
from pdrgate.safety.journal import Journal
from pdrgate.stretch import MemorySeen
from pdrgate.testbeds import Stands, Testbed

_IN_DOUBT = 3
"""Trials more of each build where the first leaves doubt that both do the same, and of the boots after those."""

SeenOfBoth = Mapping[Side, list[MemorySeen]]
"""What trials of both builds have seen; nothing where one of them could not be made."""


class TwoCpuSuts:
    """What two CPUs do to each other for a packet, scenario by scenario, on one SUT of each build.

    The SUTs are booted when they are asked for first. One trial tells that nothing has changed, which is most often so.
    What further ones show to be worse is believed where another boot of each build shows it, too.

    Args:
        workers: set up and measure both at once; what they have started ends with them.
    """

    def __init__(self, session: Session, builds: Mapping[Side, Build], workers: ThreadPoolExecutor) -> None:
        self._session = session
        self._builds = builds
        self._workers = workers
        self._up: dict[Side, Testbed] = {}
        self._known: dict[Side, KnownState] = {}
        self._going_on: list[Future[object]] = []

    def told(self, task: ComparisonTask) -> OnTwoCpus:
        """What is known of both builds; nothing where the testbed has no such SUT, or one of them tells nothing."""
        seen = self._seen(task, _doubtful)
        found = results_of(seen, 1)
        if not _worse(found):
            return found
        self._session.observer.said("two CPUs share more lines for a packet: both builds are booted once more")
        self.close()
        again = self._seen(task, lambda seen: True)
        return results_of({side: [*seen[side], *again[side]] for side in SIDES}) if again else {}

    def settle(self) -> None:
        """Wait until both are put back to what they were before the last scenario."""
        wait(self._going_on)
        self._going_on.clear()

    def close(self) -> None:
        """End both; may be called twice."""
        self.settle()
        for side in list(self._up):
            self._lost(side)

    def _seen(self, task: ComparisonTask, in_doubt: Callable[[SeenOfBoth], bool]) -> SeenOfBoth:
        """What was seen of each build's packets: in one trial, and further ones where that leaves doubt.

        What goes wrong is told, and ends both SUTs.
        """
        self.settle()
        session, suts = self._session, dict[Side, OpenLoopSut]()
        with session.on_two_cpus() as able, session.recorded_in(session.record.two_cpus if able else session.record):
            try:
                for side in SIDES if able else ():
                    suts[side] = self._sut(side, task)
                self._each(suts, lambda sut: sut.set_up())
                for sut in suts.values():
                    sut.prepare()
                self._each(suts, lambda sut: see_packets([sut], 1))
                if in_doubt(_of(suts)):
                    self._each(suts, lambda sut: see_packets([sut], _IN_DOUBT))
            except PdrGateError as error:
                session.observer.said(f"what two CPUs share is not told: {error}")
                for sut in suts.values():
                    sut.abandon()
                self.close()
                return {}
        self._going_on += [self._workers.submit(self._release, side, sut) for side, sut in suts.items()]
        return _of(suts)

    def _each(self, suts: Mapping[Side, OpenLoopSut], done: Callable[[OpenLoopSut], object]) -> None:
        """Do it with both at once. Raises what the first one raises, when both have ended."""
        coming = [self._workers.submit(done, sut) for sut in suts.values()]
        wait(coming)
        for one in coming:
            one.result()

    def _release(self, side: Side, sut: OpenLoopSut) -> None:
        """Put a SUT back; one that cannot be put back is ended, and the next scenario has another."""
        try:
            sut.release()
        except PdrGateError as error:
            self._session.observer.said(str(error))
            self._lost(side)

    def _lost(self, side: Side) -> None:
        try:
            self._session.leave([self._up.pop(side)])
        except PdrGateError as error:
            self._session.observer.said(str(error))

    def _sut(self, side: Side, task: ComparisonTask) -> OpenLoopSut:
        build = self._builds[side]
        if side not in self._up:
            testbed = self._up[side] = self._session.begin(partial(_standing, build), kept=True)
            self._known[side] = KnownState(base=StandingBase() if testbed.disposable else None)
        identity = Identity(side, build.label, program=build.program, test=task.longname)
        return OpenLoopSut(
            self._session, task.scenario, self._up[side], identity, introduce=False, known=self._known[side]
        )  # fmt: skip


def _standing(build: Build, journal: Journal) -> Testbed:
    testbed = build.start(journal)
    return testbed.standing() if isinstance(testbed, Stands) else testbed


def _of(suts: Mapping[Side, OpenLoopSut]) -> SeenOfBoth:
    return {side: memory_of(sut.trials) for side, sut in suts.items()}


def _doubtful(seen: SeenOfBoth) -> bool:
    before, after = (seen.get(side, []) for side in SIDES)
    return not before or not after or memory_may_have_changed(before[-1], after[-1], JUDGED_OF_TWO_CPUS)


def _worse(found: OnTwoCpus) -> bool:
    changes = memory_changes(found.get("baseline"), found.get("candidate"), {}, JUDGED_OF_TWO_CPUS)
    return any(one.verdict is Verdict.REGRESSION for one in changes)
