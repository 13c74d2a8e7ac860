"""Two builds, or two configurations of one, compared by transfers of a closed loop in several boots of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pdrgate.gate.comparisons.cold_boots.boots import Boots
from pdrgate.gate.comparisons.cold_boots.one_boot import Boot
from pdrgate.gate.comparisons.pairs.compared_stretches import ComparedStretches
from pdrgate.gate.comparisons.pairs.comparison_task import ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_shape import PairsShape, shape_of
from pdrgate.gate.comparisons.pairs.tries import Earlier
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.run.progress import Estimate
from pdrgate.gate.scenarios.transfer_run import TransferMeasurands, transfer_in_words, transfers_result
from pdrgate.gate.sut.closed_loop_sut import ClosedLoopSut
from pdrgate.gate.sut.prepared_sut import Identity
from pdrgate.measurands import OF_TRANSFERS, Description, TcpThroughput, TransferAsk, TransferStep, compared_of, told_of
from pdrgate.record.transfer import Transfer
from pdrgate.results.model import ScenarioResult, Side
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.testbeds import Testbed

_KIB = 1024


class TransferBoots(Boots[TransferAsk, Transfer]):
    """All boots make the same transfers at the window that the scenario fixes: nothing is searched."""

    @property
    def _searched(self) -> Collection[Side]:
        return self.builds

    def forget_searches(self) -> None:
        """There are none."""

    def _new_sut(self, testbed: Testbed, identity: Identity, introduce: bool) -> ClosedLoopSut:
        return ClosedLoopSut(self.session, self.scenario, testbed, identity, told=self._told, introduce=introduce)

    def _search(self, one: Boot[TransferAsk, Transfer]) -> None:
        """Nothing is."""

    def _steps(self, number: int) -> Sequence[TransferStep]:
        return self._measurands.steps

    def _values(self, what: str, trials: Sequence[Transfer]) -> Mapping[str, float]:
        values = {measurand.name: measurand.value(trials) for measurand in self._measurands.all}
        if values[TcpThroughput.name] is None:
            self.failure = Judgement(Verdict.INCONCLUSIVE, f"{what}: no transfer tells of it")
        return {name: value for name, value in values.items() if value is not None}

    @property
    def _measurands(self) -> TransferMeasurands:
        assert self.scenario.streams is not None
        streams, profile = self.scenario.streams, self.session.profile
        return TransferMeasurands.at(
            streams.window * _KIB,
            profile.boot_trial,
            profile.boot_transfers,
            buffers=streams.buffers,
            request=streams.request,
        )


class ComparedTransfers(ComparedStretches[Transfer]):
    """Transfers of a closed loop."""

    compared: ClassVar[tuple[Description, ...]] = compared_of(OF_TRANSFERS)
    also_told: ClassVar[tuple[Description, ...]] = told_of(OF_TRANSFERS)

    def replication(
        self, told: Callable[[Transfer, bool], None], known: Callable[[Mapping[str, str]], None]
    ) -> TransferBoots:
        task = self.task
        return TransferBoots(
            task.session, task.scenario, task.builds, together=task.plan.together, told=told, known=known,
            test=task.longname,
        )  # fmt: skip

    def known(self) -> Sequence[Transfer]:
        return self.task.session.record.earlier_transfers.all

    def shape(
        self, samples: Mapping[str, Mapping[Any, tuple[float, ...]]], stretches: Sequence[Transfer], earlier: Earlier
    ) -> PairsShape:
        return shape_of(
            self.compared, samples, earlier=earlier.samples, contradictions=earlier.contradictions
        )  # fmt: skip

    def progress(
        self, one: Transfer, now: Sequence[Transfer], count: int, left: Estimate | None, *, replayed: bool
    ) -> None:
        again = ", of the run that is continued" if replayed else ""
        self.task.session.observer.said(f"{one.belonging.side} {one.belonging.pair}, {transfer_in_words(one)}{again}")

    def detailed(self, result: ScenarioResult, stretches: Sequence[Transfer]) -> ScenarioResult:
        """The result with what TCP did in the candidate's boots."""
        streams = self.task.scenario.streams
        assert streams is not None
        mine = [transfer for transfer in stretches if transfer.belonging.side == "candidate"]
        transfers = transfers_result(streams.window * _KIB, mine)
        return replace(result, details=replace(result.details, transfers=transfers))


class TransferComparison(PairsComparison[Transfer]):
    """A comparison of two builds by transfers, of one scenario over boots of both."""

    def _kind_of(self, task: ComparisonTask) -> ComparedTransfers:
        return ComparedTransfers(task)
