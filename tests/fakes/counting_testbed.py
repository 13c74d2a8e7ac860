"""A simulated SUT whose kernel says what it executes: as many instructions per packet as a test asks for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

from fake_testbed import FakeTestbed
from simulated_sut import SimulatedSut

from pdrgate.observers.watching import Counting, Observation, Observer
from pdrgate.record.trial import Trial

TICK = "update_process_times"
BATCH = 50


class CountingTestbed(FakeTestbed, Counting):
    """A testbed that is its own counting.

    Args:
        path: instructions per packet by function; each is called once by each packet.
    """

    uncounted = ""
    exact = True

    def __init__(self, sut: SimulatedSut, path: Callable[[], Mapping[str, float]], **more: str) -> None:
        super().__init__(sut, **more)
        self.executed = self
        self._path = path
        self.busy_now = False
        self.rested_busy: list[bool] = []
        self._last: Trial | None = None
        measure = sut.measure

        def remembered(load: float, duration: float) -> Trial:
            self._last = measure(load, duration)
            return self._last

        sut.measure = remembered  # type: ignore[method-assign]

    @contextlib.contextmanager
    def busy(self):
        self.busy_now = True
        yield
        self.busy_now = False

    def counting(self) -> tuple[Observer, ...]:
        return (self,)

    def begin(self) -> None:
        self._last = None

    def end(self) -> Observation:
        packets = self._last.forwarded if self._last else 0
        if self._last is None:
            self.rested_busy.append(self.busy_now)
        functions = {
            name: (round(each * packets), packets) for name, each in self._path().items() if packets
        }  # fmt: skip
        functions |= {TICK: (250_000, 250), "user space": (10**8, 0)}
        if packets:
            functions["virtnet_poll"] = (packets, max(1, packets // BATCH))
        return Observation(functions=functions, counted=0.3)
