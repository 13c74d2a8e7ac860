"""Boots of two builds that transfer by TCP: all make the same transfers at one window, and nothing is searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pdrgate.gate.comparisons.cold_boots.boots import Boots
from pdrgate.gate.scenarios.transfer_run import measured_transfers
from pdrgate.measurands import Measurand, ReplicateStep, TcpThroughput
from pdrgate.measurands.measurand import values_of
from pdrgate.record.trial import Trial
from pdrgate.results.verdict import Judgement, Verdict


class TransferBoots(Boots):
    """Boots that make the transfers of a replicate at the window that the scenario fixes, and search nothing."""

    def _steps(self, number: int) -> Sequence[ReplicateStep]:
        return self._measurands

    def _values(self, what: str, trials: Sequence[Trial]) -> Mapping[str, float]:
        values = values_of(self._measurands, trials)
        if TcpThroughput.name not in values:
            self.failure = Judgement(Verdict.INCONCLUSIVE, f"{what}: no transfer shows it")
        return values

    @property
    def _measurands(self) -> tuple[Measurand, ...]:
        assert self.scenario.streams is not None
        streams, profile = self.scenario.streams, self.session.profile
        return measured_transfers(
            self.scenario.window, profile.boot_trial, profile.boot_transfers, buffers=streams.buffers,
            request=streams.request,
        )  # fmt: skip
