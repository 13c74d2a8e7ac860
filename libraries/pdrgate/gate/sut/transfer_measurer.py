"""Measures transfers for a scenario, by a closed loop."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from pdrgate.gate.run.resumed_run import EarlierStretches
from pdrgate.gate.sut.measurer import Measurer, seen_by
from pdrgate.history.transfers import TransferFile
from pdrgate.measurands import TransferAsk
from pdrgate.observers.watching import Observer
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import Belonging, Occasion
from pdrgate.record.transfer import Transfer
from pdrgate.traffic.closed_loop import ClosedLoop


class TransferMeasurer(Measurer[Transfer]):
    """A `Measurer` of transfers. Those that tell what a byte costs have their functions counted."""

    def __init__(
        self,
        loop: ClosedLoop,
        observers: Sequence[Observer],
        file: TransferFile,
        belonging: Belonging,
        *,
        counting: Sequence[Observer] = (),
        earlier: EarlierStretches[Transfer] | None = None,
        told: Callable[[Transfer, bool], None] = lambda transfer, replayed: None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(observers, file, belonging, counting=counting, earlier=earlier, told=told, check=check)
        self._loop = loop

    def measure(self, ask: TransferAsk, repeat: int = 0) -> Transfer:
        """One transfer. Raises what the closed loop and the disk raise."""
        earlier = self._earlier.next(self._belonging, (ask.phase, repeat, ask.window, ask.duration))
        return self._taken(earlier, lambda: self._fresh(ask, repeat))

    def _fresh(self, ask: TransferAsk, repeat: int) -> Transfer:
        with self._blamed():
            with self._watching(self._counting if ask.phase == Phase.REPEAT else ()) as watch:
                transfer = self._loop.transfer(ask.window, ask.duration, ask.rate)
            observation = watch.observation
        return self._keep(
            dataclasses.replace(
                transfer,
                seen=seen_by(observation),
                belonging=self._belonging,
                occasion=Occasion(repeat, phase=ask.phase, started=transfer.occasion.started),
            )
        )
