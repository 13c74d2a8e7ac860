"""Boots of two builds, a pair at a time: booted, asked, and left. What they are asked is a subclass's."""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pdrgate.gate.comparisons.cold_boots.boots_ahead import BootsAhead
from pdrgate.gate.comparisons.cold_boots.one_boot import Boot, BootError
from pdrgate.gate.comparisons.pairs.builds_boots import BuildsBoots
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, Build, ComparisonTask
from pdrgate.gate.scenarios.replicate_samples import measure_in_turn
from pdrgate.gate.sut.fingerprinting import fingerprint_differences
from pdrgate.gate.sut.prepared_sut import Identity, PreparedSut
from pdrgate.measurands import ReplicateStep
from pdrgate.measurands.counted.cost import with_pair_beside
from pdrgate.record.trial import Trial
from pdrgate.replication.replicates import Replicates
from pdrgate.results.model import BootResult, Side
from pdrgate.stats.intervals import load_meanwhile
from pdrgate.values.errors import DataError, PdrGateError, TestbedError


class Boots(BuildsBoots):
    """Boots pairs of builds on one session's testbed and measures them.

    Where the plan has them together, both boots of a pair are up at once, and are measured in turn.
    """

    def __init__(self, task: ComparisonTask) -> None:
        super().__init__(task)
        self._together = task.plan.together
        self._introduced: set[Side] = set()
        """Sides of which a boot has been described in words."""
        self._ahead = BootsAhead(self._sut)

    # --- What boots are asked ---

    def _search(self, one: Boot) -> None:
        """What must be known of each build before boots are asked; sets `failure` where there is nothing to ask."""

    @abstractmethod
    def _steps(self, number: int) -> Sequence[ReplicateStep]:
        """What the boots of a pair are asked, once that is known."""

    def _stands_others(self, one: Boot) -> bool:
        """Whether the next answer of a boot is the same while another boot is asked."""
        return False

    def _measure_more(self, started: Sequence[Boot]) -> None:
        """What takes the first answers of a pair to be asked."""

    @abstractmethod
    def _values(self, what: str, trials: Sequence[Trial]) -> Mapping[str, float]:
        """What a boot came to, by measurand; sets `failure` where that is nothing to compare.

        Args:
            what: the boot in words.
        """

    def _look_at_packets(self, started: Sequence[Boot]) -> None:
        """Take what was seen of the packets of these boots; sets `unlike` where they are not as they must be."""

    @property
    def _searched(self) -> Collection[Side]:
        """The builds that need no search any more."""
        return self.builds

    def _forget_searches(self) -> None:
        """Called when a boot failed: where not all is known yet, both builds are searched anew."""

    # --- Pairs ---

    def next(self, number: int, *, wanted: Callable[[int], bool]) -> Replicates:
        """Measure pair ``number``: both boots, or the one that failed."""
        try:
            return Replicates(*self._pair(number, wanted))
        except BootError as failed:
            self.session.observer.said(f"boot {number} of the {failed.side} failed: {failed.error}")
            result = failed.result(number)
            for frame in result.crash.trace if result.crash is not None else ():
                self.session.observer.said(f"    {frame}")
            self._forget_searches()
            return Replicates((result,))

    def _pair(self, number: int, wanted: Callable[[int], bool]) -> tuple[list[BootResult], list[Trial]]:
        """Boot and measure pair ``number``; nothing comes of it where `failure` is set then.

        Args:
            wanted: whether a pair after this one will be measured, whatever this one shows: where it disturbs nobody,
                it boots meanwhile. Asked when that can begin: until then the time may be over.

        Raises:
            BootError: a boot failed; both are left.
        """
        order = SIDES if number % 2 else SIDES[::-1]
        groups = [order] if self._together else [(side,) for side in order]
        if not self._together:
            # What is asked lies around both: where boots follow each other, each is searched in a boot of its own.
            for side in order:
                if side not in self._searched:
                    self._group((side,), number, search_only=True)
                if self.failure is not None:
                    return [], []
        done: list[Boot] = []
        for group in groups:
            done += self._group(group, number, wanted)
            if self.failure is not None:
                return [], []
        results = [self._boot_result(one, number, [other for other in done if other is not one]) for one in done]
        if self.failure is not None:
            return [], []
        return results, [trial for one in done for trial in one.trials]

    def _boot_result(self, one: Boot, number: int, others: Sequence[Boot]) -> BootResult:
        """What a boot came to beside the others of its pair; sets `failure` when that is nothing to compare."""
        side = one.build.side
        trials = with_pair_beside(one.trials, [each for other in others for each in other.trials])
        values = self._values(f"boot {number} of the {side} {one.build.label}", trials)
        return BootResult(
            side=side, pair=number, boot=one.sut.boot_id, kernel=one.sut.kernel, values=values,
            complaints=tuple(one.sut.complaints),
        )  # fmt: skip

    def _group(
        self,
        group: Sequence[Side],
        number: int,
        wanted: Callable[[int], bool] = lambda pair: False,
        *,
        search_only: bool = False,
    ) -> list[Boot]:
        started: list[Boot] = []
        booting: list[PreparedSut] = []
        try:
            for side in group:
                booting += [self._begun(side, number)]  # one by one, too
            load_meanwhile()
            for sut in booting:
                sut.testbed.hurry()
            for side, sut in zip(group, booting, strict=True):
                # One by one: what was started before a failure must be released.
                started.append(self._start(self.builds[side], sut))
            if _unlike(started):
                # One of them fell back to emulation: so will both the next time, and nothing was measured yet.
                self.session.observer.said("the two guests do not run by the same accelerator: both are booted again")
                mixed, started, ended, booting = started, [], booting, []
                self._leave(mixed, ended)
                for side in group:
                    known = self.sides[side]
                    self.sides[side] = known.but(replace(known.findings, fingerprint={}))
                return self._group(group, number, search_only=search_only)
            go_ahead = partial(self._ahead.go_on, wanted)
            if all(one.sut.testbed.steady for one in started):
                self._ahead.plan(group, number)
                go_ahead()
            self._judge_packets(started)
            for one in started:
                self._search(one)
            if self.failure is None and not search_only:
                for one in started:
                    one.steps = self._steps(number)
                measure_in_turn(started, go_ahead, self._stands_others)
                self._measure_more(started)
                self._judge_packets(started)
        finally:
            # Of one that did not come to be measured because the other failed, nothing may be left for the next pair.
            abandon = self._ahead.give_up(booting)
            self._leave(started, booting)
            abandon()
        return started

    def _judge_packets(self, started: Sequence[Boot]) -> None:
        self._look_at_packets(started)
        self.failure = self.failure or self.unlike

    def _leave(self, started: Sequence[Boot], booting: Sequence[PreparedSut]) -> None:
        for one in reversed(started):
            self._release(one.sut)
        self.session.leave([sut.testbed for sut in booting])

    def close(self) -> None:
        """Wait until nothing is set up any more beside trials; the testbeds of what was are the session's to leave."""
        self._ahead.close()

    def _begun(self, side: Side, number: int) -> PreparedSut:
        self.session.observer.said(f"boot {number} of the {side}, {self.builds[side].label}")
        if (ahead := self._ahead.of(side, number)) is not None:
            return ahead
        try:
            sut = self._sut(side, number)
        except TestbedError as error:
            raise BootError(side, error) from error
        if self._together and sut.testbed.boots:
            self._ahead.set_up(sut)  # both of a pair at once
        return sut

    def _sut(self, side: Side, number: int) -> PreparedSut:
        build = self.builds[side]
        testbed = self.session.begin(build.start)
        # Namespaces made anew are a start of the SUT too, though its kernel stays; made once more they are another one.
        boot_id = "" if testbed.boots else f"{testbed.boot_id}-{side}-{number}-{secrets.token_hex(4)}"
        identity = Identity(
            side, build.label, number, boot_id, build.program, build.planted, self.task.longname, stays=False
        )
        return PreparedSut(
            self.session, self.scenario, testbed, identity, on_trial=self.on_trial,
            introduce=side not in self._introduced,
        )  # fmt: skip

    def _start(self, build: Build, sut: PreparedSut) -> Boot:
        testbed = sut.testbed
        try:
            self._ahead.take(sut)
            try:
                self.session.ready(testbed, sut.introduce)
                sut.prepare()
            except BaseException:
                self._release(sut)
                raise
        except TestbedError as error:
            raise BootError(build.side, error, sut.boot_id) from error
        self._introduced.add(build.side)
        try:
            self._take(build, sut)
        except BaseException:
            self._release(sut)
            raise
        return Boot(build, sut)

    def _take(self, build: Build, sut: PreparedSut) -> None:
        """Record a boot's environment and fingerprint.

        Raises DataError where its fingerprint is not that of the boots before it, or what `came_up` raises.
        """
        if told := fingerprint_differences(self.sides[build.side].findings.fingerprint, sut.fingerprint):
            raise DataError(
                f"boots of the {build.side} {build.label} cannot be taken together: {'; '.join(told)}; start a new run"
            )
        self.came_up(build.side, sut)

    def _release(self, sut: PreparedSut) -> None:
        try:
            sut.release(ending=True)
        except PdrGateError as error:
            # The guest may be gone, and with it all that was to be put back.
            self.session.observer.warned(str(error))


def _unlike(started: Sequence[Boot]) -> bool:
    """Whether guests that are to be compared run by different accelerators."""
    return len({one.sut.testbed.describe().get("accelerator") for one in started}) > 1
