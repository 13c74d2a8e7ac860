"""One SUT, set up for a scenario and put back: what transfers are measured on."""

from __future__ import annotations

from collections.abc import Callable

from pdrgate.data_paths.catalogue import DATA_PATHS, DataPath
from pdrgate.gate.run.progress import Upcoming
from pdrgate.gate.run.resumed_run import EarlierStretches
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.sut.known_state import KnownState
from pdrgate.gate.sut.prepared_sut import Identity, PreparedSut, Traffic
from pdrgate.gate.sut.transfer_measurer import TransferMeasurer
from pdrgate.measurands import TransferAsk
from pdrgate.observers.watching import watching
from pdrgate.record.transfer import Transfer
from pdrgate.search.patience import Patience
from pdrgate.testbeds import KeepsGenerator, Testbed
from pdrgate.traffic.closed_loop import ClosedLoop
from pdrgate.values.errors import TestbedError

_KIB = 1024
_WARMING = 1.0
"""Seconds of a transfer that nobody counts, the shortest there is."""


class ClosedLoopSut(PreparedSut[TransferAsk, Transfer]):
    """A SUT that transfers are measured on, from `prepare` to `release`.

    Args:
        told: gets each transfer, and whether it is one of the run that is resumed.
        introduce: whether to say what is measured and with what.
        known: as of `PreparedSut`.

    Raises:
        TestbedError: the scenario is no closed loop.
    """

    def __init__(
        self,
        session: Session,
        scenario: Scenario,
        testbed: Testbed,
        identity: Identity | None = None,
        *,
        told: Callable[[Transfer, bool], None] = lambda transfer, replayed: None,
        introduce: bool = True,
        known: KnownState | None = None,
    ) -> None:
        if scenario.streams is None:
            closed = next(name for name, path in DATA_PATHS.items() if path.transfers)
            raise TestbedError(
                f"{scenario.data_path} transfers nothing by TCP; choose {closed}, or search its partial drop rate"
            )
        super().__init__(session, scenario, testbed, identity, introduce=introduce, known=known)
        self._told = told
        self._loop: ClosedLoop | None = None
        self._measurer: TransferMeasurer | None = None

    @property
    def transfers(self) -> list[Transfer]:
        """All of this SUT so far, those of the run that is resumed included."""
        return self._measurer.made if self._measurer else []

    def measure_patiently(self, ask: TransferAsk, patience: Patience, repeat: int = 0) -> Transfer:
        """One transfer, the last of those that it takes."""
        if self._measurer is None:
            raise TestbedError("the SUT is not set up for a scenario; begin with its data path")
        mine = self.identity
        self.session.observer.measuring(Upcoming(ask.phase, 0.0, ask.duration, mine.side, mine.pair, window=ask.window))
        made = [self._measurer.measure(ask, repeat)]
        while patience.again(made):
            made.append(self._measurer.measure(ask, repeat))
        return made[-1]

    def _begin(self, path: DataPath) -> Traffic:
        self._loop = path.loop
        assert self._loop is not None
        self._traffic = self._loop  # to be closed, also when nothing passes
        if isinstance(self.testbed, KeepsGenerator):
            self.testbed.end_generator()
        if self.testbed.steady and self.scenario.streams is not None:
            # Code is translated when it runs first, and once more when it is counted first: a boot's first transfer
            # found its CPU 8 % late, and 2 % after one that was not counted.
            with watching(self._counting):
                self._loop.transfer(self.scenario.streams.window * _KIB, _WARMING)
        return self._loop

    def _begin_measuring(self) -> None:
        assert self._loop is not None
        record = self.session.record
        belonging = self.belonging()
        self._measurer = TransferMeasurer(
            self._loop, self._observers, record.transfers, belonging,
            counting=self._counting, earlier=record.earlier_transfers, told=self._told, check=self._check,
        )  # fmt: skip

    def _earlier(self) -> EarlierStretches[Transfer]:
        return self.session.record.earlier_transfers
