"""A SUT of several CPUs of each build that stays up while scenarios are seen on it, beside those that are counted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace

from pdrgate.gate.comparisons.cold_boots.one_boot import BootError
from pdrgate.gate.comparisons.living_boots.packets_on_cpus import (
    BOOTS,
    SeveralCpusSeen,
    not_shared,
    run_in_lockstep,
    see_packets,
    seen_of_both,
)
from pdrgate.gate.comparisons.living_boots.standing_suts import StandingSuts
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, Build, ComparisonTask
from pdrgate.gate.comparisons.pairs.failed_boots import too_many_failed
from pdrgate.gate.run.session import Session
from pdrgate.gate.sut.prepared_sut import Identity, PreparedSut
from pdrgate.guests.guest import GuestError
from pdrgate.measurands import BuildSeen, Rule, changes_by_rule
from pdrgate.measurands.memory.memory_doubt import memory_may_have_changed
from pdrgate.measurands.memory.memory_trials import memory_of
from pdrgate.measurands.memory.scaling import LOCKSTEP_TRIALS
from pdrgate.measurands.memory.shared_lines import OF_SEVERAL_CPUS
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.model import BootResult, ChangeResult, Findings, MemoryResult, Side
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.values.errors import PdrGateError

_ONCE = 2
"""Trials of each build where a comparison boots such guests for itself."""
_IN_DOUBT = 3
"""Trials more of each build where the first leaves doubt that both do the same, and of the boots after those."""
_ENOUGH = 2
"""Scenarios in which the candidate dies each time while none of its SUTs has come up. It is booted no more."""


@dataclass(frozen=True, slots=True)
class _Begun:
    """Both SUTs of a scenario; none where the testbed has none."""

    task: ComparisonTask
    suts: dict[Side, PreparedSut] = field(default_factory=dict)
    coming: dict[Side, Future[None]] = field(default_factory=dict)
    """What sets them up."""


_FIRST_TURNS, _MORE_TURNS = (Phase.ALL_CPUS, Phase.ONE_CPU), (Phase.ALL_CPUS,)
"""Trials of each boot in which CPUs execute in turn, and those of one in doubt."""

TrialsOfBoth = Mapping[Side, Sequence[Trial]]
"""The trials of both builds; nothing where one of them could not be made."""


class SeveralCpuSuts(StandingSuts[Side]):
    """What several CPUs do to each other for a packet, scenario by scenario, on one SUT of each build.

    The SUTs are booted when they are asked for first. Most often one trial is enough to show that nothing has changed.
    What further ones show to be worse is believed where another boot of each build shows it, too.

    Args:
        alone: whether they are of one comparison, which has no others that stay up. They come up when they are asked,
            for only its pairs show whether the testbed can record what they touch, and end then.
    """

    def __init__(self, session: Session, builds: Mapping[Side, Build], *, alone: bool = False) -> None:
        super().__init__(session)
        self._alone = alone
        self._trials = _ONCE if alone else 1
        """Trials of each boot, before there is any doubt."""
        self._turns = LOCKSTEP_TRIALS if alone else _FIRST_TURNS
        """Phases of the trials of each boot in which CPUs execute in turn, before there is any doubt."""
        self._builds = builds
        self._workers = {side: ThreadPoolExecutor(1, f"several-cpus-{side}") for side in SIDES}
        """A thread for each SUT, in which one thing is done after the other. What a thread has started ends with it, so
        that both stay as well."""
        self._cpus = 0
        """How many each has; 0 where the testbed has none."""
        self._begun: _Begun | None = None
        self._given_up = False
        self._came_up = False
        """Whether both have ever been set up for a scenario."""
        self._dead: list[SeveralCpusSeen] = []
        """What scenarios came to in which the candidate died each time, while none of its SUTs had come up."""
        self._died: list[BootResult] = []
        """SUTs that have died since a scenario was begun to be measured."""

    def begin(self, task: ComparisonTask) -> None:
        """Have both come up and be set up for a scenario while other things are done; `seen` waits for them."""
        if self._given_up or self._alone:
            return
        with contextlib.suppress(PdrGateError):  # it is tried again, and an error is raised, when its turn comes
            self._begin(task)

    def seen(self, task: ComparisonTask) -> SeveralCpusSeen:
        """What both builds show; nothing where the testbed has no such SUT."""
        try:
            return self._seen(task)
        finally:
            if self._alone:
                self.close()

    def _seen(self, task: ComparisonTask) -> SeveralCpusSeen:
        if len(self._dead) >= _ENOUGH:
            return self._dead[-1]
        made, lost = self._made(task, _doubtful)
        found = replace(seen_of_both(made, self._trials, lost), crash=self._crash(task))
        if found.crash is not None and not self._came_up:
            self._dead.append(found)
            self._given_up = len(self._dead) >= _ENOUGH
        if found.crash is not None or not _worse(found.results):
            return found
        self._session.observer.said("several CPUs show something to be worse: both builds are booted once more")
        self._end()
        again, lost = self._made(task, lambda seen: True)
        both = {side: [*made[side], *again[side]] for side in SIDES} if again else {}
        return replace(seen_of_both(both, self._trials, lost), crash=self._crash(task))

    def give_up(self) -> None:
        """Begin nothing from now on before it is asked for: one of the builds does not come up."""
        self._given_up = True

    def close(self) -> None:
        """End both, and what sets them up; may be called twice."""
        self._end()
        for worker in self._workers.values():
            worker.shutdown()

    def _begin(self, task: ComparisonTask) -> None:
        """Begin with both SUTs, after putting back what they had. Raises PdrGateError."""
        self._put_back()
        self._begun = _Begun(task)
        self._go_on(self._begun, SIDES)

    def _go_on(self, begun: _Begun, sides: Iterable[Side]) -> None:
        """Have these sides set up. Raises PdrGateError."""
        session = self._session
        with (
            session.on_several_cpus() as cpus,
            session.recorded_in(session.record.several_cpus if cpus else session.record),
        ):
            self._cpus = cpus
            for side in sides if cpus else ():
                begun.suts[side] = sut = self._sut(side, begun.task)
                begun.coming[side] = self._workers[side].submit(sut.prepare)

    def _prepared(self, task: ComparisonTask) -> Mapping[Side, PreparedSut]:
        """Both SUTs, set up for a scenario; none where the testbed has none. Raises PdrGateError."""
        if self._begun is None or self._begun.task is not task:
            self._begin(task)
        begun = self._begun
        assert begun is not None
        self.settle()
        wait(begun.coming.values())
        # One that could not be put back from the scenario before is gone.
        lost = [side for side, sut in begun.suts.items() if not self._is_up(side, sut)]
        for side in lost:
            begun.suts[side].abandon()
        self._go_on(begun, lost)
        self._await(begun.coming)
        self._came_up = True
        return begun.suts

    def _await(self, coming: Mapping[Side, Future[None]]) -> None:
        """Wait until all of it has ended, and note whose SUT has died. Raises what the first one raises."""
        wait(coming.values())
        for side, one in coming.items():
            if isinstance(error := one.exception(), GuestError):
                self._died.append(BootError(side, error).result(1))
        for one in coming.values():
            one.result()

    def _crash(self, task: ComparisonTask) -> Judgement | None:
        """The verdict on a candidate that dies where it has several CPUs, each time, beside a baseline that does not.

        Otherwise a kernel would hide what several CPUs do to each other by dying there.
        """
        found = too_many_failed(self._died, task.labels, baseline_came_up=not task.one_content)
        if found is None or found.verdict is not Verdict.CRASH:
            return None
        return Judgement(found.verdict, f"with {self._cpus} CPUs: {found.reason}")

    def _made(
        self, task: ComparisonTask, in_doubt: Callable[[TrialsOfBoth], bool]
    ) -> tuple[TrialsOfBoth, Sequence[str]]:
        """What was seen of each build's packets, in one trial, and further ones where that leaves doubt; and what was
        not seen, and why.

        What goes wrong ends both SUTs, and others are booted.
        """
        made: TrialsOfBoth = {}
        lost: list[str] = []
        self._died.clear()
        for _ in range(BOOTS):
            lost.clear()
            try:
                suts = self._prepared(task)
                self._see(suts, self._trials, self._turns, lost.append)
                if in_doubt(_of(suts)):
                    self._see(suts, _IN_DOUBT, _MORE_TURNS, lost.append)
                made = _of(suts)
            except PdrGateError as error:
                if lost:  # in lockstep, when what they share was seen
                    made = _of(suts)
                else:
                    lost.append(not_shared(error))
            if not lost:
                self._put_back()
                break
            for one in dict.fromkeys(lost):
                self._session.observer.said(one)
            self._end()
        return made, lost

    def _see(
        self, suts: Mapping[Side, PreparedSut], trials: int, turns: Sequence[Phase], lose: Callable[[str], None]
    ) -> None:
        """Make trials of both at once, beside nothing else: the slower one is, the more often its clock ticks."""
        cpus, workers = self._cpus, self._workers
        self._await({side: workers[side].submit(see_packets, sut, cpus, trials) for side, sut in suts.items()})
        self._await(
            {side: workers[side].submit(run_in_lockstep, [sut], cpus, lose, turns) for side, sut in suts.items()}
        )

    def _put_back(self) -> None:
        """Have both put back to what they were before the scenario, while other things are done."""
        begun, self._begun = self._begun, None
        for side, sut in begun.suts.items() if begun is not None else ():
            if self._is_up(side, sut):
                self._going_on.append(self._workers[side].submit(self.release, side, sut))
            else:
                sut.abandon()

    def _end(self) -> None:
        """End both, whatever is done with them; may be called twice."""
        self.settle()
        begun, self._begun = self._begun, None
        self._end_all()
        if begun is not None:
            wait(begun.coming.values())  # not for long once both are closed
            for sut in begun.suts.values():
                sut.abandon()

    def _is_up(self, side: Side, sut: PreparedSut) -> bool:
        return self._up.get(side) is sut.testbed

    def _sut(self, side: Side, task: ComparisonTask) -> PreparedSut:
        build = self._builds[side]
        if side not in self._up:
            self._boot(side, build.start)
        identity = Identity(side, build.label, program=build.program, test=task.longname)
        return PreparedSut(
            self._session.as_it_is(), task.scenario, self._up[side], identity, introduce=False, known=self.known[side]
        )  # fmt: skip


def _of(suts: Mapping[Side, PreparedSut]) -> TrialsOfBoth:
    return {side: list(sut.trials) for side, sut in suts.items()}


_JUDGED = tuple(kind for kind in OF_SEVERAL_CPUS if kind.about.rule is Rule.SURE)


def _doubtful(made: TrialsOfBoth) -> bool:
    before, after = (memory_of(made.get(side, ())) for side in SIDES)
    if not before or not after or memory_may_have_changed(before[-1], after[-1], _JUDGED):
        return True
    return any(2.0 * abs(one.change) > one.tolerance for one in _changes(seen_of_both(made, 1).results))


def _worse(found: Mapping[Side, MemoryResult]) -> bool:
    return any(one.verdict is Verdict.REGRESSION for one in _changes(found))


def _changes(found: Mapping[Side, MemoryResult]) -> tuple[ChangeResult, ...]:
    before, after = (BuildSeen(findings=Findings(several_cpus=found.get(side))) for side in SIDES)
    return changes_by_rule(before, after, {})
