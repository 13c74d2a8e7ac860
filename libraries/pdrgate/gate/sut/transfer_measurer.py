"""Measures transfers for a scenario: traffic, who watches it, and the transfer on disk before anything else happens."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from pdrgate.errors import PdrGateError
from pdrgate.gate.run.resumed_run import Belonging, EarlierStretches
from pdrgate.history.transfers import TransferFile
from pdrgate.measurands import TransferAsk
from pdrgate.observers.reading import nested, without_zeros
from pdrgate.observers.watching import Observer, watching
from pdrgate.phase import Phase
from pdrgate.traffic.closed_loop import ClosedLoop
from pdrgate.transfer import Transfer


class TransferMeasurer:
    """As `Measurer` of trials.

    Args:
        observers: what watches each transfer.
        counting: what does besides, within these, where the transfer is to tell what a byte costs.
        earlier: transfers of the run that is resumed: those that belong to the same are taken as long as what is asked
            for next is what was measured next.
        on_transfer: told each transfer, and whether it is an earlier one.
        check: called when a fresh one is on disk, or none came of it; raises when the SUT has died of it.
    """

    def __init__(
        self,
        loop: ClosedLoop,
        observers: Sequence[Observer],
        file: TransferFile,
        belonging: Belonging,
        *,
        counting: Sequence[Observer] = (),
        earlier: EarlierStretches[Transfer] | None = None,
        on_transfer: Callable[[Transfer, bool], None] = lambda transfer, replayed: None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._loop = loop
        self._observers = tuple(observers)
        self._counting = tuple(counting)
        self._file = file
        self._belonging = belonging
        self._earlier = EarlierStretches[Transfer]() if earlier is None else earlier
        self._on_transfer = on_transfer
        self._check = check
        self.transfers: list[Transfer] = []
        """All of the scenario so far, earlier ones included."""

    def measure(self, ask: TransferAsk, repeat: int = 0) -> Transfer:
        """One transfer. Raises what the closed loop and the disk raise."""
        replayed = self._earlier.next(self._belonging, (ask.phase, repeat, ask.window, ask.duration))
        transfer = replayed or self._fresh(ask, repeat)
        self.transfers.append(transfer)
        self._on_transfer(transfer, replayed is not None)
        return transfer

    def _fresh(self, ask: TransferAsk, repeat: int) -> Transfer:
        try:
            with watching((*self._observers, *(self._counting if ask.phase == Phase.REPEAT else ()))) as watch:
                transfer = self._loop.transfer(ask.window, ask.duration, ask.rate)
        except PdrGateError:
            self._check()
            raise
        observed = watch.observation
        before, after = without_zeros(observed.before, observed.after)
        transfer = dataclasses.replace(
            transfer,
            counters_before=nested(before),
            counters_after=nested(after),
            functions=observed.functions,
            disturbed=observed.disturbed,
            phase=ask.phase,
            repeat=repeat,
            **dataclasses.asdict(self._belonging),
        )
        self._file.append(transfer)
        self._check()
        return transfer
