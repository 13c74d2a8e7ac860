"""A scenario on SUTs that stay up: set up, counted, and taken away again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pdrgate.builds.bpf_build import BpfRefusedError
from pdrgate.gate.comparisons.cold_boots.one_boot import BootError
from pdrgate.gate.comparisons.living_boots.living_counts import LivingCount
from pdrgate.gate.comparisons.living_boots.living_suts import AT_ONCE, LivingSuts, OfPair
from pdrgate.gate.comparisons.pairs.builds_boots import BuildsBoots
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, ComparisonTask
from pdrgate.gate.comparisons.pairs.failed_boots import refused_alone
from pdrgate.gate.sut.prepared_sut import Identity, PreparedSut
from pdrgate.guests.guest import GuestError
from pdrgate.hosts.host import NOT_FOUND, CommandError, HostError
from pdrgate.measurands.counted.cost import with_pair_beside
from pdrgate.record.trial import Trial
from pdrgate.replication.replicates import Replicates
from pdrgate.results.model import BootResult, Side
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.testbeds import Testbed
from pdrgate.values.errors import TestbedError, ToolError


class LivingBoots(BuildsBoots):
    """Counts a scenario on pairs of living SUTs, some of them at once.

    What the first guests run is kept where it is all that the scenario runs: where no guests of several CPUs are seen
    besides.

    Args:
        counted: what each of them is asked.
    """

    def __init__(self, task: ComparisonTask, suts: LivingSuts, counted: LivingCount) -> None:
        super().__init__(task)
        self.frames = counted.frames
        self._suts = suts
        self._counted = counted

    def next(self, number: int, *, wanted: Callable[[int], bool]) -> Replicates:
        suts: dict[OfPair, PreparedSut] = {}
        try:
            # Of two pairs the first may be enough. Then the second comes alone, and two at once after it.
            others = range(number + 1, number + AT_ONCE) if number % AT_ONCE else ()
            testbeds = self._suts.pairs((number, *filter(wanted, others)))
            suts |= {one: self._sut(one, testbed) for one, testbed in testbeds.items()}
            self._set_up(suts)
            if self.failure is None:
                self._prepare_each(suts)
            if self.failure is None:
                self._at_once(suts, self._counted.count)
                again = self._counted.doubtful([*suts.values()])
                self._at_once({one: sut for one, sut in suts.items() if sut in again}, self._counted.count)
            self.unlike = self._counted.unlike([*suts.values()])
            self.failure = self.failure or self.unlike
            made = [one for sut in suts.values() for one in sut.trials] if self.failure is None else []
            results = [self._result(*one, sut, made) for one, sut in suts.items()] if made else []
            if results and not self.task.plan.several_cpus:
                self._suts.codes.keep(suts.values())
        except BootError as failed:
            pair = next((pair for (side, pair), sut in suts.items() if sut.boot_id == failed.boot_id), number)
            if not self._suts.given_up(failed.side):
                self.session.observer.said(f"boot {pair} of the {failed.side} failed: {failed.error}")
            self._suts.lost((failed.side, pair))
            return Replicates((failed.result(pair),))
        finally:
            self._suts.meanwhile([partial(self._suts.release, one, sut) for one, sut in suts.items()])
        return Replicates(results, made)

    def close(self) -> None:
        """Nothing is begun beforehand."""

    @property
    def baseline_came_up(self) -> bool:
        return super().baseline_came_up or "baseline" in self._suts.came_up

    # --- Some pairs ---

    def _sut(self, one: OfPair, testbed: Testbed) -> PreparedSut:
        (side, number), build = one, self.builds[one[0]]
        identity = Identity(side, build.label, number, "", build.program, build.planted, self.task.longname)
        return PreparedSut(
            self.session, self.scenario, testbed, identity, on_trial=self.on_trial, introduce=one == (SIDES[0], 1),
            known=self._suts.known[one],
        )  # fmt: skip

    def _set_up(self, suts: Mapping[OfPair, PreparedSut]) -> None:
        """Set all of them up. No build is to blame where no boot of either can be, nor where the baseline lacks a tool.

        Raises BootError.
        """
        failed = self._failed(suts, self._suts.codes.set_up)
        refused = [one.error for one in failed if isinstance(one.error, BpfRefusedError)]
        lacking = [one.error for one in failed if is_a_tools(one.error)]
        if lacking and any(one.side == "baseline" for one in failed if is_a_tools(one.error)):
            self.failure = Judgement(Verdict.ERROR, str(lacking[0]))
        elif len(failed) == len(suts) and not any(isinstance(one.error, GuestError) for one in failed):
            self.unable = f"neither build can: {failed[0].error}"
            self.failure = Judgement(Verdict.ERROR, self.unable)
        elif refused and all(one.side == "candidate" for one in failed):
            self.failure = refused_alone(str(refused[0]))
        elif failed:
            self.failure = unable_alone(failed, [side for side, _ in suts])

    def _at_once(self, suts: Mapping[OfPair, PreparedSut], done: Callable[[PreparedSut], object]) -> None:
        """Do it with all of them; what the first one fails with is raised when all have ended. Raises BootError."""
        if failed := self._failed(suts, done):
            raise failed[0]

    def _failed(self, suts: Mapping[OfPair, PreparedSut], done: Callable[[PreparedSut], object]) -> list[BootError]:
        failed: list[BootError] = []
        for (side, _), sut, coming in [(*both, self._suts.workers.submit(done, both[1])) for both in suts.items()]:
            try:
                coming.result()
            except TestbedError as error:
                failed.append(BootError(side, error, sut.boot_id, sut.kernel))
        return failed

    def _prepare_each(self, suts: Mapping[OfPair, PreparedSut]) -> None:
        failed: list[BootError] = []
        for one, sut in suts.items():
            try:
                self._prepare(one, sut)
            except BootError as error:
                failed.append(error)
        if failed:
            self.failure = unable_alone(failed, [side for side, _ in suts])

    def _prepare(self, one: OfPair, sut: PreparedSut) -> None:
        side = one[0]
        try:
            sut.prepare()
        except TestbedError as error:
            raise BootError(side, error, sut.boot_id) from error
        if sut.uncounted:
            self.failure = Judgement(
                Verdict.ERROR,
                f"boots that stay up are judged by what a packet costs, and {sut.uncounted}; use --measure pdr",
            )
        self.came_up(side, sut)

    def _result(self, side: Side, number: int, sut: PreparedSut, of_all: Sequence[Trial]) -> BootResult:
        made = sut.trials
        others = [one for one in of_all if one.belonging.side != side]
        values = self._counted.values(with_pair_beside(made, others))
        if (first := self._counted.first.about.name) not in values and self.failure is None:
            build = self.builds[side].label
            self.failure = Judgement(
                Verdict.UNSTABLE,
                f"boot {number} of the {side} {build} does not tell its {first}: {self._counted.why_missing(made)}",
            )
        return BootResult(
            side=side, pair=number, boot=sut.boot_id, kernel=sut.kernel,
            values=values, complaints=tuple(sut.complaints),
        )  # fmt: skip


def is_a_tools(error: TestbedError) -> bool:
    """Whether a program is missing, or did not do what it is for: neither kernel refused anything."""
    return isinstance(error, ToolError) or (
        isinstance(error, CommandError) and error.completed.exit_code == NOT_FOUND
    )  # fmt: skip


def unable_alone(failed: Sequence[BootError], sides: Sequence[Side]) -> Judgement:
    """The verdict on a candidate whose kernel cannot do on any boot that is up what the baseline's does on each.

    Args:
        failed: what went wrong, one for each boot.
        sides: of all boots.

    Raises:
        BootError: the first of them, where it is otherwise, or where a guest has died of it or a command did not end:
            that may be a busy machine's fault.
    """
    own = [one for one in failed if one.side == "candidate" and one.sut_failed]
    silent = any(isinstance(one.error, HostError) for one in own)
    if len(own) < sides.count("candidate") or len(failed) > len(own) or silent:
        raise failed[0]
    return Judgement(Verdict.REGRESSION, f"the candidate cannot, and the baseline can: {own[0].error}")
