"""A closed loop without packets: a path of some delay, a SUT of some speed, and nothing else."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

from fake_testbed import QUICK, FakeTestbed, Watcher, new_session
from flat_values import flat_transfer
from simulated_sut import IdealCurve, SimulatedSut

from pdrgate.data_paths.catalogue import Hop, TcpStreams
from pdrgate.data_paths.paths.tcp_transfer import TcpTransfer
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.scenarios.transfer_run import TransferRun
from pdrgate.gate.verdicts.baseline import BaselineSource
from pdrgate.history.database.experience import Experience
from pdrgate.record.transfer import Look
from pdrgate.record.trial import Trial
from pdrgate.results.model import ScenarioResult

SEGMENT = 1448


class SimulatedLoop:
    """Satisfies ``ClosedLoop``: the window is all that is under way, until the SUT is at its limit; then it queues."""

    def __init__(
        self,
        *,
        speed: float = 10e9,
        rtt: float = 100e-6,
        scatter: float = 0.005,
        again: float = 0.0,
        waits: float = 0.0,
        seed: int = 1,
    ) -> None:
        self.speed = speed
        """Bits/s that the SUT takes."""
        self.rtt = rtt
        """Seconds at rest."""
        self.again = again
        """Part of the segments that are sent again."""
        self.waits = waits
        """Seconds that a round trip takes besides, under load."""
        self.calls: list[tuple[int, float, float]] = []
        self.is_open = True
        self._scatter = scatter
        self._random = random.Random(seed)

    def describe(self) -> dict[str, str]:
        return {"name": "simulated", "engine": "tcp", "version": "1"}

    def transfer(self, window: int, duration: float, rate: float = 0.0) -> Trial:
        self.calls.append((window, duration, rate))
        most = rate or min(8 * window / self.rtt, self.speed)
        speed = most * (1.0 + self._random.gauss(0.0, 0.0 if rate else self._scatter))
        sent = round(speed * duration / 8)
        rtt = self.rtt if rate else max(self.rtt, 8 * window / self.speed) + self.waits
        look = Look(duration, duration, sent, 0, rtt, rtt / 10, window)
        return flat_transfer(
            window=window, streams=1, congestion="cubic", intended_duration=duration, intended_rate=rate,
            delivered=sent, seconds=duration, sent=sent, segment=SEGMENT,
            retransmitted=0 if rate else round(self.again * sent / SEGMENT), looks=(look,), started=time.time(),
        )  # fmt: skip

    def close(self) -> None:
        self.is_open = False


class SimulatedTcp(TcpTransfer):
    """The data path around it."""

    def __init__(self, loop: SimulatedLoop) -> None:
        super().__init__(4, TcpStreams())
        self._simulated = loop

    @property
    def loop(self) -> SimulatedLoop:  # type: ignore[override]
        return self._simulated

    def apply(self, hops: Sequence[Hop]) -> None:
        self._simulated.is_open = True

    def restore(self) -> list[str]:
        return []


def of_loops(choose: Callable[[], SimulatedLoop]) -> Callable[..., SimulatedTcp]:
    """What stands for `data_path`: the path around the loop that is chosen each time."""
    return lambda *_, **__: SimulatedTcp(choose())


def transferred(
    folder: Path, *loops: SimulatedLoop, baselines: BaselineSource | None = None, kernel: str = "6.18",
    scenario: Scenario | None = None, experience: Experience | None = None,
) -> list[ScenarioResult]:  # fmt: skip
    """A run of a closed loop in a folder of its own: the same scenario once for each loop, each judged by 2 %."""
    state = folder.with_name(f"state-{folder.name}")
    testbed = FakeTestbed(SimulatedSut(IdealCurve(1e6)), kernel=kernel)
    results = []
    with new_session(testbed, folder, Watcher(), state, QUICK, experience=experience) as session:
        for loop in loops:
            with mock.patch("pdrgate.gate.sut.prepared_sut.data_path", of_loops(lambda loop=loop: loop)):
                run = TransferRun(session, scenario or Scenario("tcp-transfer"), baselines=baselines)
                run.prepare()
                run.repeat()
                run.judge(0.02)
                results.append(run.result(run.finish()))
        session.record.close()
    return results
