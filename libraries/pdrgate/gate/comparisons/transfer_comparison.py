"""Two builds, or two configurations of one, compared by transfers of a closed loop in several boots of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

from pdrgate.gate.comparisons.boots import Boot, Boots
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.comparisons.pairs_shape import PairsShape, shape_of_transfers
from pdrgate.gate.scenarios.transfer_run import TransferMeasurands, in_words, transfers_result
from pdrgate.gate.sut.closed_loop_sut import TransferSubject
from pdrgate.gate.sut.prepared_sut import Identity
from pdrgate.measurands import OF_TRANSFERS, Description, TcpThroughput, TransferAsk, TransferStep, compared_of, told_of
from pdrgate.results.model import Side, TransfersResult
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.testbeds import Testbed
from pdrgate.transfer import Transfer

_KIB = 1024


class TransferBoots(Boots[TransferAsk, Transfer]):
    """All boots make the same transfers at the window that the scenario fixes: nothing is searched."""

    @property
    def _searched(self) -> Collection[Side]:
        return self.builds

    def forget_searches(self) -> None:
        """There are none."""

    def _new_subject(self, testbed: Testbed, identity: Identity, introduce: bool) -> TransferSubject:
        return TransferSubject(self.session, self.scenario, testbed, identity, told=self._told, introduce=introduce)

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
        window = self.scenario.streams.window * _KIB
        profile = self.session.profile
        return TransferMeasurands.at(window, profile.boot_trial, profile.boot_transfers)


class TransferComparison(PairsComparison[Transfer]):
    """One scenario over boots of two builds, by transfers."""

    compared: ClassVar[tuple[Description, ...]] = compared_of(OF_TRANSFERS)
    also_told: ClassVar[tuple[Description, ...]] = told_of(OF_TRANSFERS)

    def _new_boots(self) -> TransferBoots:
        return TransferBoots(
            self.session, self.scenario, self.builds, together=self.plan.together, told=self._told,
            known=self._begin_on, test=self.longname,
        )  # fmt: skip

    def _shape_of(self, samples: Mapping[str, Mapping[Side, tuple[float, ...]]]) -> PairsShape:
        earlier = self._earlier
        return shape_of_transfers(samples, earlier=earlier.samples, contradictions=earlier.contradictions)

    def _progress(self, one: Transfer, replayed: bool) -> None:
        again = ", of the run that is continued" if replayed else ""
        self.session.observer.said(f"{one.side} {one.pair}, {in_words(one)}{again}")

    def _known(self) -> Sequence[Transfer]:
        return self.session.record.earlier_transfers.all

    def _transfers(self) -> TransfersResult | None:
        assert self.scenario.streams is not None
        mine = [transfer for transfer in self._trials if transfer.side == "candidate"]
        return transfers_result(self.scenario.streams.window * _KIB, mine)
