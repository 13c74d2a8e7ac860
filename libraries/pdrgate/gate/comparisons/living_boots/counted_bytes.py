"""Bytes that a closed loop moves, counted on a living SUT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.scenarios.replicate_samples import Replicate, measure_in_turn
from pdrgate.gate.sut.carried_frames import FramesSeen
from pdrgate.gate.sut.prepared_sut import PreparedSut
from pdrgate.measurands import Measurand, TransferSetting, of_transfers
from pdrgate.measurands.measurand import Described
from pdrgate.measurands.transfers.tcp import ByteCost
from pdrgate.record.trial import Trial
from pdrgate.results.model import Side
from pdrgate.results.verdict import Judgement

_KIB = 1024
_AT_ONCE, _OF_REQUESTS, _OVER_DELAY = (4, 0.5), (2, 1.0), (2, 2.0)
"""Transfers, and seconds of each: over a path with delay a window takes some round trips to grow. Else the more there
are, the likelier one of them has the CPU; requests are as many, however long they take."""


class CountedBytes:
    """Transfers of a living SUT; a `LivingCount`."""

    first: type[Described] = ByteCost

    def __init__(self, session: Session, scenario: Scenario, suts: LivingSuts) -> None:
        self.frames: dict[Side, FramesSeen] = {}
        self._session = session
        self._scenario = scenario
        self._suts = suts

    def count(self, sut: PreparedSut) -> None:
        measure_in_turn([Replicate(sut, self._measurands)])

    def doubtful(self, suts: Sequence[PreparedSut]) -> Sequence[PreparedSut]:
        return ()

    def values(self, trials: Sequence[Trial]) -> Mapping[str, float]:
        values = {each.name: each.value(trials) for each in self._measurands}
        return {name: value for name, value in values.items() if value is not None}

    def why_missing(self, trials: Sequence[Trial]) -> str:
        return f"none of its {len(trials)} transfers shows it"

    def unlike(self, suts: Sequence[PreparedSut]) -> Judgement | None:
        return None

    @property
    def _measurands(self) -> tuple[Measurand, ...]:
        streams = self._scenario.streams
        assert streams is not None
        count, duration = _OVER_DELAY if streams.delay else _OF_REQUESTS if streams.request else _AT_ONCE
        asked = of_transfers(
            TransferSetting(
                window=streams.window * _KIB,
                duration=duration,
                count=count,
                buffers=streams.buffers,
                request=streams.request,
            )
        )
        return tuple(replace(each, least=True) if isinstance(each, ByteCost) else each for each in asked)
