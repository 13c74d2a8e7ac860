"""Runs pdrgate's command line with a simulated SUT in place of every testbed. NOT a measurement of anything: it is for
testing what the gate makes of curves that are known.

    python tests/acceptance/simulation.py '{"saturation": 1e6, "noise": 0.002}' gate --output FOLDER …
"""

from __future__ import annotations

import functools
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

import pdrgate.search.mlr  # noqa: F401, I001  # first: see pdrgate.launch.running
from curves import EarlyLoss
from fake_testbed import FakeTestbed

import pdrgate.gate.run.session as session
import pdrgate.keywords.testbed as keywords
from pdrgate.cli import main
from pdrgate.values.errors import GeneratorError
from pdrgate.gate.run.session import Session
from pdrgate.safety.journal import Journal
from pdrgate.testbeds import TestbedConfig
from simulated_sut import Behaviour, Ceiling, IdealCurve, SimulatedSut
from pdrgate.record.trial import Trial


class MortalSut(SimulatedSut):
    """One whose generator dies at a trial, or pdrgate itself does; 0 means never."""

    fails_at = 0
    breaks_at = 0

    def measure(self, load: float, duration: float) -> Trial:
        self.fails_at -= 1
        self.breaks_at -= 1
        if self.breaks_at == 0:
            raise RuntimeError("something of ours is broken")
        if self.fails_at == 0:
            raise GeneratorError("the traffic generator has ended (signal 9); run again")
        return super().measure(load, duration)


class Boots(FakeTestbed):
    """A testbed of which each that is opened is a boot with a level of its own."""

    def __init__(self, saturation: float, sut: SimulatedSut, kernel: str, deviation: float, seed: int) -> None:
        super().__init__(sut, kernel=kernel)
        self._saturation = saturation
        self._deviation = deviation
        self._source = random.Random(seed)

    def open_with(self, config: TestbedConfig, journal: Journal) -> FakeTestbed:
        level = self._saturation * (1 + self._source.gauss(0, self._deviation))
        sut = SimulatedSut(IdealCurve(level), Behaviour(0.002), seed=self._source.getrandbits(16), ceiling=Ceiling(4e6))
        return FakeTestbed(sut, boot_id=f"boot-{level:.0f}", kernel=self.kernel)


def simulated(
    saturation: float = 1e6,
    noise: float = 0.002,
    modes: tuple[float, ...] = (1.0,),
    drift: float = 0.0,
    ceiling: float = 4e6,
    seed: int = 1,
    kernel: str = "6.1.0-simulated",
    fails_at: int = 0,
    breaks_at: int = 0,
    loses_from: float | None = None,
    boots: float = 0.0,
) -> FakeTestbed:
    """What the SUT is like: loads in packets/s, the rest relative; ``loses_from`` as a part of the saturation.

    Args:
        boots: what its boots deviate by.
    """
    behaviour = Behaviour(noise=noise, modes=modes, drift=drift)
    curve = IdealCurve(saturation) if loses_from is None else EarlyLoss(saturation, loses_from)
    sut = MortalSut(curve, behaviour, seed=seed, ceiling=Ceiling(ceiling))
    sut.fails_at, sut.breaks_at = fails_at, breaks_at
    return Boots(saturation, sut, kernel, boots, seed) if boots else FakeTestbed(sut, kernel=kernel)


def simulate(simulation: dict[str, Any], arguments: Sequence[str]) -> int:
    """One run, and its exit code."""
    testbed = simulated(**simulation)
    with tempfile.TemporaryDirectory() as state:
        patched = functools.partial(Session, opener=testbed.open_with, state=Path(state))
        keywords.Session = session.Session = patched  # type: ignore[misc,assignment]
        return main(list(arguments))


if __name__ == "__main__":
    sys.exit(simulate(json.loads(sys.argv[1]), sys.argv[2:]))
