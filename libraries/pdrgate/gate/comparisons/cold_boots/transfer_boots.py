"""Boots of two builds that transfer by TCP: all make the same transfers at one window, and nothing is searched."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pdrgate.gate.comparisons.cold_boots.boots import Boots
from pdrgate.gate.comparisons.cold_boots.one_boot import Boot
from pdrgate.gate.scenarios.transfer_run import measured_transfers
from pdrgate.measurands import Measurand, ReplicateStep, TcpThroughput
from pdrgate.record.trial import Trial
from pdrgate.results.model import Side
from pdrgate.results.verdict import Judgement, Verdict

_KIB = 1024


class TransferBoots(Boots):
    """Boots that make the transfers of a replicate at the window that the scenario fixes."""

    @property
    def _searched(self) -> Collection[Side]:
        return self.builds

    def forget_searches(self) -> None:
        """Do nothing: there are no searches."""

    def _search(self, one: Boot) -> None:
        """Do nothing: a closed loop has no bounds to search."""

    def _steps(self, number: int) -> Sequence[ReplicateStep]:
        return self._measurands

    def _values(self, what: str, trials: Sequence[Trial]) -> Mapping[str, float]:
        values = {measurand.name: measurand.value(trials) for measurand in self._measurands}
        if values[TcpThroughput.name] is None:
            self.failure = Judgement(Verdict.INCONCLUSIVE, f"{what}: no transfer shows it")
        return {name: value for name, value in values.items() if value is not None}

    @property
    def _measurands(self) -> tuple[Measurand, ...]:
        assert self.scenario.streams is not None
        streams, profile = self.scenario.streams, self.session.profile
        return measured_transfers(
            streams.window * _KIB, profile.boot_trial, profile.boot_transfers, buffers=streams.buffers,
            request=streams.request,
        )  # fmt: skip
